// Colours for code, loaded when the first block needs them. The highlighter gives a tree, which becomes elements: no HTML.

import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import type { ReactNode } from "react";

const lowlight = createLowlight({ bash, css, go, java, json, markdown, python, rust, sql, typescript, xml, yaml });
lowlight.registerAlias({
  typescript: ["ts", "tsx", "js", "jsx", "javascript", "mjs"],
  bash: ["sh", "shell"],
  xml: ["html", "svg"],
});

interface Tree {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: readonly string[] };
  readonly children?: readonly Tree[];
}

/** The code in colours; undefined for a language that is not known. */
export function colour(code: string, language: string): ReactNode {
  if (!lowlight.registered(language.toLowerCase())) return undefined;
  return draw((lowlight.highlight(language.toLowerCase(), code) as unknown as Tree).children);
}

function draw(nodes: readonly Tree[] = []): ReactNode {
  return nodes.map((node, i) =>
    node.type === "text" ? (
      node.value
    ) : (
      <span key={i} className={node.properties?.className?.join(" ")}>
        {draw(node.children)}
      </span>
    ),
  );
}
