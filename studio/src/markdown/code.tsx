// A block of code: at once as plain text, coloured when the highlighter has arrived. What is long stays plain.

import { type ReactNode, useEffect, useState } from "react";
import { IconButton } from "../ui/button.tsx";

const longest = 50_000;

export function Code({ code, language }: { code: string; language?: string | undefined }) {
  const name = language?.trim().split(/\s/)[0];
  const coloured = useColours(code, name);
  return (
    <div className="code">
      <div className="code-head">
        <span>{name ?? "text"}</span>
        <IconButton icon="copy" label="Copy the code" onClick={() => void navigator.clipboard.writeText(code)} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with keys */}
      <pre tabIndex={0}>
        <code>{coloured ?? code}</code>
      </pre>
    </div>
  );
}

function useColours(code: string, language: string | undefined): ReactNode {
  const [drawn, setDrawn] = useState<{ code: string; nodes: ReactNode }>();
  useEffect(() => {
    if (language === undefined || code.length > longest) return;
    let isStale = false;
    // A block that is being written is coloured when it rests.
    const timer = setTimeout(async () => {
      const { colour } = await import("./highlight.tsx");
      const nodes = colour(code, language);
      if (!isStale && nodes !== undefined) setDrawn({ code, nodes });
    }, 60);
    return () => {
      isStale = true;
      clearTimeout(timer);
    };
  }, [code, language]);
  return drawn?.code === code ? drawn.nodes : undefined;
}
