// Documents of office programs: archives of XML files. Only their text is read: no macros, no links, no pictures.

import { attributeOf, tidy, tokensOf } from "./markup.ts";
import { Archive } from "./zip.ts";

/** Which tags have text, and what the ends of others stand for. */
interface Writing {
  readonly text: ReadonlySet<string> | "all";
  readonly marks: Readonly<Record<string, string>>;
}

function textIn(xml: string, { text, marks }: Writing): string {
  const out: string[] = [];
  let inside = text === "all" ? 1 : 0;
  for (const token of tokensOf(xml)) {
    if (token.kind === "text") {
      if (inside > 0) out.push(token.text);
      continue;
    }
    const isText = text !== "all" && text.has(token.name);
    if (token.kind === "open" && isText && !token.isEmpty) inside++;
    if (token.kind === "close" && isText) inside--;
    if (token.kind === "close" || token.isEmpty) out.push(marks[token.name] ?? "");
  }
  return out.join("");
}

const word: Writing = {
  text: new Set(["w:t"]),
  marks: { "w:p": "\n", "w:br": "\n", "w:tab": "\t", "w:tc": "\t", "w:tr": "\n" },
};

export function docxText(bytes: Uint8Array): string {
  const archive = new Archive(bytes);
  const parts = ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml"].map((name) =>
    textIn(archive.text(name), word),
  );
  return tidy(parts.join("\n"));
}

const slide: Writing = { text: new Set(["a:t"]), marks: { "a:p": "\n", "a:br": "\n", "a:tc": "\t" } };

export function pptxText(bytes: Uint8Array): string {
  const archive = new Archive(bytes);
  const slides = numbered(archive.names, /^ppt\/slides\/slide(\d+)\.xml$/);
  return tidy(slides.map((name, i) => `Slide ${i + 1}\n${textIn(archive.text(name), slide)}`).join("\n\n"));
}

function numbered(names: readonly string[], pattern: RegExp): string[] {
  const numberOf = (name: string) => Number(pattern.exec(name)?.[1]);
  return names.filter((name) => pattern.test(name)).sort((a, b) => numberOf(a) - numberOf(b));
}

export function xlsxText(bytes: Uint8Array): string {
  const archive = new Archive(bytes);
  const shared = sharedTexts(archive.text("xl/sharedStrings.xml"));
  const titles = [...tokensOf(archive.text("xl/workbook.xml"))].flatMap((token) =>
    token.kind === "open" && token.name === "sheet" ? [attributeOf(token.attributes, "name") ?? ""] : [],
  );
  const sheets = numbered(archive.names, /^xl\/worksheets\/sheet(\d+)\.xml$/);
  const texts = sheets.map((name, i) => `${titles[i] || `Sheet ${i + 1}`}\n${sheetText(archive.text(name), shared)}`);
  return tidy(texts.join("\n\n"));
}

function sharedTexts(xml: string): string[] {
  const texts: string[] = [];
  let inside = false;
  for (const token of tokensOf(xml)) {
    if (token.kind === "open" && token.name === "si") texts.push("");
    else if (token.kind !== "text" && token.name === "t") inside = token.kind === "open" && !token.isEmpty;
    else if (token.kind === "text" && inside) texts[texts.length - 1] += token.text;
  }
  return texts;
}

/** One line for each row, with tabs between cells. */
function sheetText(xml: string, shared: readonly string[]): string {
  const rows: string[][] = [];
  let type: string | undefined;
  let value: string | undefined;
  for (const token of tokensOf(xml)) {
    if (token.kind === "text") {
      if (value !== undefined) value += token.text;
    } else if (token.name === "row" && token.kind === "open") rows.push([]);
    else if (token.name === "c" && token.kind === "open") type = attributeOf(token.attributes, "t");
    else if (token.name === "v" || token.name === "t") {
      if (token.kind === "open" && !token.isEmpty) value = "";
      else if (value !== undefined) {
        rows.at(-1)?.push(type === "s" ? (shared[Number(value)] ?? "") : value);
        value = undefined;
      }
    }
  }
  return rows.map((cells) => cells.join("\t")).join("\n");
}

const open: Writing = {
  text: "all",
  marks: {
    "text:p": "\n",
    "text:h": "\n",
    "text:line-break": "\n",
    "text:tab": "\t",
    "text:s": " ",
    "table:table-cell": "\t",
  },
};

export function odtText(bytes: Uint8Array): string {
  const xml = new Archive(bytes).text("content.xml");
  const body = xml.slice(Math.max(0, xml.indexOf("<office:body")));
  return tidy(textIn(body, open));
}
