// A strict reading of the flowcharts that are drawn: a subset of Mermaid's grammar, in which every line is one of few forms and
// every name is defined before it is used. (Mermaid's own parser needs a document, and brings 60 packages.)

const id = "[A-Za-z_][A-Za-z0-9_]*";
/** Quoted text: no quotes, no line ends, no markup; other signs as `#code;`. */
const text = '"(?:[^"#<>`;\\n\\r{}|\\\\]|#[0-9]+;)*"';
const node = new RegExp(
  `^  (${id})(?:\\(\\[${text}\\]\\)|\\[${text}\\]|\\[\\[${text}\\]\\]|\\[/${text}/\\]|\\{\\{${text}\\}\\})$`,
  "u",
);
const edge = new RegExp(`^  (${id}) (?:-->|-\\.->)(?:\\|${text}\\|)? (${id})$`, "u");
const style = new RegExp(`^  classDef (${id}) [a-z-]+: ?[^,;\\n]+(?:,[a-z-]+: ?[^,;\\n]+)*$`, "u");
const classed = new RegExp(`^  class (${id}) (${id})$`, "u");
const keywords = new Set(["end", "graph", "subgraph", "class", "click", "default", "style", "direction"]);

/** What is wrong with a flowchart, line by line. */
export function checkMermaid(drawn: string): string[] {
  const [head, ...lines] = drawn.split("\n");
  const problems = head === "flowchart TD" ? [] : [`the first line is ${head}`];
  if (lines.pop() !== "") problems.push("it does not end with a line end");
  const nodes = new Set<string>();
  const styles = new Set<string>();
  for (const line of lines) {
    const [, made] = node.exec(line) ?? [];
    const [, from, to] = edge.exec(line) ?? [];
    const [, styled] = style.exec(line) ?? [];
    const [, of, as] = classed.exec(line) ?? [];
    if (made !== undefined) {
      if (keywords.has(made) || nodes.has(made)) problems.push(`${made} can't name a node (again)`);
      nodes.add(made);
    } else if (from !== undefined) {
      for (const each of [from, to!]) if (!nodes.has(each)) problems.push(`${each} is not defined: ${line}`);
    } else if (styled !== undefined) styles.add(styled);
    else if (of === undefined) problems.push(`no form fits: ${line}`);
    else if (!nodes.has(of) || !styles.has(as!)) problems.push(`${of} or ${as} is not defined: ${line}`);
  }
  return problems;
}
