// The model's view: exactly what a model was sent for a reply, proved by its hash, and where it differs from the call before.

import { useEffect, useState } from "react";
import type { RemoteBranch } from "../data/bough.ts";
import { Json } from "../ui/json.tsx";
import { counted } from "../ui/time.ts";
import { sentenceOf } from "../ui/toast.tsx";

type Prompt = Awaited<ReturnType<RemoteBranch["promptOf"]>>;
type Diff = Awaited<ReturnType<RemoteBranch["diffPrompts"]>>;

interface ModelPaneProps {
  readonly handle: RemoteBranch;
  /** Replies of the branch up to the position that is shown, oldest first. */
  readonly replies: readonly string[];
  readonly chosen: string | undefined;
  readonly onChoose: (messageId: string) => void;
}

export function ModelPane({ handle, replies, chosen, onChoose }: ModelPaneProps) {
  const found = chosen === undefined ? -1 : replies.indexOf(chosen);
  const index = found < 0 ? replies.length - 1 : found;
  const messageId = replies[index];
  const before = replies[index - 1];
  const asked = usePrompt(handle, messageId, before);
  if (messageId === undefined) return <p className="pad quiet">No model was called yet.</p>;
  const { prompt, diff, error } = asked;
  return (
    <div className="model pad">
      <div className="model-choice">
        <label>
          Call{" "}
          <select value={messageId} onChange={(event) => onChoose(event.target.value)}>
            {replies.map((id, i) => (
              <option key={id} value={id}>
                {i + 1} of {replies.length}
              </option>
            ))}
          </select>
        </label>
      </div>
      {error !== undefined && <p className="failure">{error}</p>}
      {diff && before !== undefined && <Difference diff={diff} />}
      {prompt && <Sent prompt={prompt} />}
    </div>
  );
}

function Difference({ diff }: { diff: Diff }) {
  const share = Math.round(diff.share * 100);
  if (diff.isPrefix) {
    return <p className="verdict good">It begins with all of the call before: the provider’s cache holds.</p>;
  }
  const { first } = diff;
  return (
    <section className="verdict bad" aria-label="What differs from the call before">
      <p>
        {share} % of the call before is its beginning; then {first ? wordsFor[first.change] : "it ends"}
        {first?.change === "messages" ? "" : ", so the cache could not hold"}.
      </p>
      {first?.from && <pre className="minus">{first.from.excerpt}</pre>}
      {first?.to && <pre className="plus">{first.to.excerpt}</pre>}
    </section>
  );
}

const wordsFor: Readonly<Record<NonNullable<Diff["first"]>["change"], string>> = {
  tools: "the tools differ",
  instructions: "the instructions differ",
  compaction: "a compaction hides messages",
  clearing: "outputs of old calls were cleared",
  hook: "a hook changed a message",
  reminder: "a reminder differs",
  reasoning: "reasoning was left out",
  messages: "the messages differ",
};

function Sent({ prompt }: { prompt: Prompt }) {
  return (
    <>
      <p className="quiet">
        {prompt.model.provider}/{prompt.model.modelId} · {counted(prompt.messages.length, "message")} ·{" "}
        {counted(prompt.tools.length, "tool")} · {prompt.isVerified ? "verified by its hash" : "not verified"}
      </p>
      {prompt.missing.length > 0 && <p className="failure">Not kept: {prompt.missing.join(", ")}.</p>}
      {prompt.tools.length > 0 && (
        <details className="sent">
          <summary>Tools</summary>
          <Json value={prompt.tools} />
        </details>
      )}
      <details className="sent">
        <summary>Settings</summary>
        <Json value={prompt.settings} />
      </details>
      {prompt.messages.map((message, i) => (
        <section key={i} className="sent">
          <h4>
            {message.role} <span className="quiet">{sourceWords(message.source)}</span>
          </h4>
          <SentContent content={message.content} />
        </section>
      ))}
    </>
  );
}

/** Words as words, everything else as JSON. */
function SentContent({ content }: { content: Prompt["messages"][number]["content"] }) {
  if (typeof content === "string") return <pre>{content}</pre>;
  return content.map((part, i) => {
    const { type, ...rest } = part as { type: string; text?: unknown; toolName?: unknown };
    if (typeof rest.text === "string") return <pre key={i}>{rest.text}</pre>;
    return (
      <Json
        key={i}
        name={`${type}${typeof rest.toolName === "string" ? ` ${rest.toolName}` : ""}`}
        value={rest}
        isOpen={false}
      />
    );
  });
}

function sourceWords(source: Prompt["messages"][number]["source"]): string {
  if (source.type !== "message") return source.type;
  if (source.isPinned) return "pinned";
  if (source.keptBy !== undefined) return "kept by a compaction";
  return source.clearedBy ? "with cleared outputs" : "";
}

interface Asked {
  readonly prompt?: Prompt;
  readonly diff?: Diff;
  readonly error?: string;
}

function usePrompt(handle: RemoteBranch, messageId: string | undefined, before: string | undefined): Asked {
  const [asked, setAsked] = useState<Asked>({});
  useEffect(() => {
    let isStale = false;
    setAsked({});
    if (messageId === undefined) return;
    const tell = (patch: Asked) => !isStale && setAsked((now) => ({ ...now, ...patch }));
    handle.promptOf(messageId).then(
      (prompt) => tell({ prompt }),
      (error: unknown) => tell({ error: sentenceOf(error) }),
    );
    if (before !== undefined) {
      handle.diffPrompts(before, messageId).then(
        (diff) => tell({ diff }),
        () => {},
      );
    }
    return () => {
      isStale = true;
    };
  }, [handle, messageId, before]);
  return asked;
}
