// A child at work inside of its parent's call: its words and its own calls, live.

import { memo, useMemo } from "react";
import { useBranch } from "../data/bough.ts";
import { useClient } from "../data/session.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { useRowActions } from "./context.tsx";
import { Rows } from "./rows.ts";

const lastMessages = 40;

export const ChildConversation = memo(function ChildConversation({
  child: { sessionId, branchId },
}: {
  child: { sessionId: string; branchId: string };
}) {
  const client = useClient();
  const { scope } = useRowActions();
  const use = useBranch(client, { agentId: scope.agentId, sessionId, branchId }, { last: lastMessages });
  const rows = useMemo(() => new Rows().make(use.messages, 0, undefined), [use.messages]);
  const own = rows.filter((row) => row.kind === "message" && row.message.turnId === use.messages.at(-1)?.turnId);
  return (
    <section className="child" aria-label="The child’s conversation">
      {own.map((row) =>
        row.kind === "message" ? (
          <div key={row.key} className={`child-message ${row.message.role}`}>
            {textsOf(row.message.content).map((text, i) => (
              <Markdown key={i} text={text} />
            ))}
            {row.calls.map(({ call, result }) => (
              <p key={call.toolCallId} className="quiet">
                {result ? "✓" : "…"} {call.toolName}
              </p>
            ))}
          </div>
        ) : null,
      )}
      {use.streaming.map(({ messageId, text }) => (
        <Markdown key={messageId} text={text} />
      ))}
      {use.error && <p className="failure">{use.error.message}</p>}
    </section>
  );
});

function textsOf(content: string | readonly { type: string }[]): string[] {
  if (typeof content === "string") return [content];
  return content.filter((part) => part.type === "text").map((part) => (part as unknown as { text: string }).text);
}
