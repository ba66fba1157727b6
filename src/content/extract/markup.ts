// Tags and texts of XML and HTML, one after the other. It reads what is there and repairs nothing: for texts, not for trees.

export type Token =
  | { readonly kind: "open"; readonly name: string; readonly attributes: string; readonly isEmpty: boolean }
  | { readonly kind: "close"; readonly name: string }
  | { readonly kind: "text"; readonly text: string };

/** The tokens of a document. Comments, declarations and instructions are passed over. */
export function* tokensOf(markup: string): Generator<Token> {
  let at = 0;
  while (at < markup.length) {
    const tag = markup.indexOf("<", at);
    const end = tag < 0 ? markup.length : tag;
    if (end > at) yield { kind: "text", text: decodeEntities(markup.slice(at, end)) };
    if (tag < 0) return;
    if (markup.startsWith("<![CDATA[", tag)) {
      const close = indexOrEnd(markup, "]]>", tag);
      yield { kind: "text", text: markup.slice(tag + 9, close) };
      at = close + 3;
      continue;
    }
    const closing = markup.startsWith("<!--", tag) ? "-->" : ">";
    const close = indexOrEnd(markup, closing, tag);
    const token = tokenOf(markup.slice(tag + 1, close));
    if (token) yield token;
    at = close + closing.length;
  }
}

function indexOrEnd(text: string, part: string, from: number): number {
  const at = text.indexOf(part, from);
  return at < 0 ? text.length : at;
}

function tokenOf(inside: string): Token | undefined {
  const [, slash, name, attributes = ""] = /^(\/?)([A-Za-z][\w:.-]*)([\s\S]*)$/.exec(inside) ?? [];
  if (name === undefined) return undefined;
  if (slash) return { kind: "close", name };
  return { kind: "open", name, attributes, isEmpty: attributes.endsWith("/") };
}

/** The value of an attribute; undefined if it is not there. */
export function attributeOf(attributes: string, name: string): string | undefined {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes);
  return found ? decodeEntities(found[1] ?? found[2] ?? "") : undefined;
}

const named: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  hellip: "…",
  ndash: "–",
  mdash: "—",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  copy: "©",
  euro: "€",
  auml: "ä",
  ouml: "ö",
  uuml: "ü",
  szlig: "ß",
  eacute: "é",
};

function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]{2,8});/gi, (whole, name: string) => {
    if (!name.startsWith("#")) return named[name] ?? whole;
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** Lines without blanks at their ends, and at most one empty line between two. */
export function tidy(text: string): string {
  return text
    .replace(/[^\S\n]+$/gm, "")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}
