import { tidy, tokensOf } from "./markup.ts";

const silent = new Set(["script", "style", "noscript", "template", "svg", "head", "iframe", "object"]);
const blocks = new Set(
  "p div section article header footer main aside nav h1 h2 h3 h4 h5 h6 ul ol li table tr blockquote pre form hr br dl dt dd figure figcaption".split(
    " ",
  ),
);

/** The text of a page: scripts, styles and what is never shown are left out. */
export function htmlText(html: string): string {
  const out: string[] = [];
  const hidden: string[] = [];
  for (const token of tokensOf(html)) {
    if (token.kind === "text") {
      if (hidden.length === 0) out.push(token.text.replace(/\s+/g, " "));
      continue;
    }
    const name = token.name.toLowerCase();
    if (token.kind === "close") {
      if (hidden.at(-1) === name) hidden.pop();
    } else if (silent.has(name) && !token.isEmpty) hidden.push(name);
    if (hidden.length > 0) continue;
    if (blocks.has(name)) out.push(token.kind === "open" && name === "li" ? "\n- " : "\n");
    else if (token.kind === "close" && (name === "td" || name === "th")) out.push("\t");
  }
  return tidy(out.join("").replace(/\n +/g, "\n"));
}
