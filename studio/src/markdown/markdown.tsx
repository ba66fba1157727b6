// Markdown as React elements: nothing is ever set as HTML, so no text can become a script. HTML in a text is shown as it is written.

import type { Token, Tokens } from "marked";
import { Fragment, memo, type ReactNode, useMemo, useRef } from "react";
import { Code } from "./code.tsx";
import { GrowingMarkdown } from "./lex.ts";
import { safeLink } from "./links.ts";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const growing = useRef<GrowingMarkdown>(null);
  growing.current ??= new GrowingMarkdown();
  const lexer = growing.current;
  const tokens = useMemo(() => lexer.lex(text), [lexer, text]);
  // Blocks are only added at the end: a block keeps its place, and so its index is its key.
  return tokens.map((token, i) => <Block key={i} token={token} />);
});

/** A block is drawn again only when its source has changed. */
const Block = memo(
  function Block({ token }: { token: Token }): ReactNode {
    switch (token.type) {
      case "heading":
        return <Heading token={token as Tokens.Heading} />;
      case "paragraph":
        return <p>{inline(token.tokens)}</p>;
      case "text":
        return <p>{token.tokens ? inline(token.tokens) : plain(token.text)}</p>;
      case "code":
        return <Code code={token.text} language={token.lang} />;
      case "blockquote":
        return <blockquote>{blocks(token.tokens)}</blockquote>;
      case "list":
        return <List token={token as Tokens.List} />;
      case "table":
        return <Table token={token as Tokens.Table} />;
      case "hr":
        return <hr />;
      case "space":
      case "def":
        return null;
      default:
        return <p className="verbatim">{token.raw}</p>;
    }
  },
  (before, after) => before.token.type === after.token.type && before.token.raw === after.token.raw,
);

function blocks(tokens: Token[] = []): ReactNode {
  return tokens.map((token, i) => <Block key={i} token={token} />);
}

/** A text's headings stand below the page's own. */
function Heading({ token }: { token: Tokens.Heading }) {
  const Level = (["h3", "h4", "h5", "h6"] as const)[Math.min(token.depth, 4) - 1] ?? "h6";
  return <Level>{inline(token.tokens)}</Level>;
}

function List({ token }: { token: Tokens.List }) {
  const items = token.items.map((item, i) => (
    <li key={i} className={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" readOnly tabIndex={-1} checked={item.checked === true} aria-label="Task" />}
      {item.tokens.map((child, j) =>
        child.type === "text" && !item.loose ? (
          <Fragment key={j}>{child.tokens ? inline(child.tokens) : plain(child.text)}</Fragment>
        ) : child.type === "checkbox" ? null : (
          <Block key={j} token={child} />
        ),
      )}
    </li>
  ));
  if (!token.ordered) return <ul>{items}</ul>;
  return <ol start={typeof token.start === "number" && token.start !== 1 ? token.start : undefined}>{items}</ol>;
}

function Table({ token }: { token: Tokens.Table }) {
  const cell = (i: number) => ({ textAlign: token.align[i] ?? ("left" as const) });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with keys
    <section className="table" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map(({ tokens }, i) => (
              <th key={i} style={cell(i)}>
                {inline(tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, i) => (
            <tr key={i}>
              {row.map(({ tokens }, j) => (
                <td key={j} style={cell(j)}>
                  {inline(tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function inline(tokens: Token[] = []): ReactNode {
  return tokens.map((token, i) => <Fragment key={i}>{span(token)}</Fragment>);
}

function span(token: Token): ReactNode {
  switch (token.type) {
    case "text":
      return token.tokens ? inline(token.tokens) : plain(token.text);
    case "escape":
      return token.text;
    case "strong":
      return <strong>{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <del>{inline(token.tokens)}</del>;
    case "codespan":
      return <code>{plain(token.text)}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link to={token.href}>{inline(token.tokens)}</Link>;
    case "image":
      return <Link to={token.href}>{`picture: ${plain(token.text) || token.href}`}</Link>;
    default:
      return token.raw;
  }
}

function Link({ to, children }: { to: string; children: ReactNode }) {
  const address = safeLink(to);
  if (address === undefined) {
    return (
      <span className="blocked" title={to}>
        {children}
      </span>
    );
  }
  return (
    <a href={address} target="_blank" rel="noreferrer noopener nofollow" title={address}>
      {children}
    </a>
  );
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** The lexer escapes for HTML; React does so itself. */
function plain(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => entities[name] ?? whole);
}
