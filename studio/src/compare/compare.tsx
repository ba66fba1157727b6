// Two branches side by side, from the point where they part. Messages they share have the same ids, so the point needs no guess.

import { useEffect, useMemo, useState } from "react";
import { type Message, textOf } from "../data/bough.ts";
import { useClient } from "../data/session.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { Button } from "../ui/button.tsx";
import { counted } from "../ui/time.ts";
import { sentenceOf } from "../ui/toast.tsx";

interface CompareProps {
  readonly scope: { readonly agentId: string; readonly sessionId: string; readonly branchId: string };
  readonly other: string;
  readonly nameOf: (branchId: string) => string;
  readonly onClose: () => void;
  readonly onShow: (branchId: string) => void;
}

interface Side {
  readonly messages: readonly Message[];
}

export function Compare({ scope, other, nameOf, onClose, onShow }: CompareProps) {
  const left = useMessages(scope, scope.branchId);
  const right = useMessages(scope, other);
  const parted = useMemo(
    () => (left.side && right.side ? part(left.side.messages, right.side.messages) : undefined),
    [left.side, right.side],
  );
  const error = left.error ?? right.error;
  return (
    <section className="compare" aria-label="Comparison">
      <header>
        <span>
          {parted ? `${counted(parted.shared, "message")} in common` : "Reading both branches …"}
          {parted && parted.shared > 0 && <span className="quiet"> · last: {textOf(parted.last!).slice(0, 80)}</span>}
        </span>
        <Button onClick={onClose}>Close</Button>
      </header>
      {error !== undefined && <p className="failure">{error}</p>}
      {parted && (
        <div className="columns">
          <Column title={nameOf(scope.branchId)} turns={parted.left} others={parted.right} onShow={() => onClose()} />
          <Column title={nameOf(other)} turns={parted.right} others={parted.left} onShow={() => onShow(other)} />
        </div>
      )}
    </section>
  );
}

function Column({
  title,
  turns,
  others,
  onShow,
}: {
  title: string;
  turns: readonly Turn[];
  others: readonly Turn[];
  onShow: () => void;
}) {
  return (
    <div className="column">
      <h3>
        <button type="button" onClick={onShow}>
          {title}
        </button>
      </h3>
      {turns.length === 0 && <p className="quiet">It ends here.</p>}
      {turns.map((turn, i) => (
        <TurnView key={turn.id} turn={turn} other={others[i]} />
      ))}
    </div>
  );
}

function TurnView({ turn, other }: { turn: Turn; other: Turn | undefined }) {
  return (
    <article className="compared">
      <p className={turn.asked === other?.asked ? "said quiet" : "said"}>{turn.asked}</p>
      {turn.calls.length > 0 && <p className="quiet">calls: {turn.calls.join(", ")}</p>}
      <Answer text={turn.answered} other={other?.answered} />
    </article>
  );
}

/** Words are marked only where most of them are the same: elsewhere red and green are noise. */
function Answer({ text, other }: { text: string; other: string | undefined }) {
  const [marked, setMarked] = useState<readonly { value: string; isOwn: boolean }[]>();
  useEffect(() => {
    setMarked(undefined);
    if (other === undefined || other === "" || text === "" || text === other) return;
    let isStale = false;
    void import("./words.ts").then(({ ownWords }) => {
      const found = ownWords(other, text);
      if (!isStale) setMarked(found);
    });
    return () => {
      isStale = true;
    };
  }, [text, other]);
  if (text === other && text !== "") return <p className="quiet">The same answer.</p>;
  if (!marked) {
    return (
      <div className="body">
        <Markdown text={text} />
      </div>
    );
  }
  return (
    <p className="body marked">
      {marked.map(({ value, isOwn }, i) => (isOwn ? <mark key={i}>{value}</mark> : <span key={i}>{value}</span>))}
    </p>
  );
}

interface Turn {
  readonly id: string;
  readonly asked: string;
  readonly calls: readonly string[];
  readonly answered: string;
}

function part(left: readonly Message[], right: readonly Message[]) {
  let shared = 0;
  while (shared < left.length && shared < right.length && left[shared]!.id === right[shared]!.id) shared++;
  return { shared, last: left[shared - 1], left: turnsOf(left.slice(shared)), right: turnsOf(right.slice(shared)) };
}

function turnsOf(messages: readonly Message[]): Turn[] {
  const turns = new Map<string, Turn>();
  for (const message of messages) {
    const { turnId, role, content } = message;
    const turn = turns.get(turnId) ?? { id: turnId, asked: "", calls: [], answered: "" };
    const text = textOf(message);
    const calls =
      typeof content === "string"
        ? []
        : content
            .filter(({ type }) => type === "tool-call")
            .map((call) => String((call as { toolName?: unknown }).toolName));
    turns.set(turnId, {
      ...turn,
      ...(role === "user" && { asked: [turn.asked, text].filter(Boolean).join("\n") }),
      ...(role === "assistant" && { answered: [turn.answered, text].filter(Boolean).join("\n\n") }),
      calls: [...turn.calls, ...calls],
    });
  }
  return [...turns.values()];
}

function useMessages(scope: CompareProps["scope"], branchId: string): { side?: Side; error?: string } {
  const client = useClient();
  const [known, setKnown] = useState<{ branchId: string; side?: Side; error?: string }>();
  const { agentId, sessionId } = scope;
  useEffect(() => {
    let isStale = false;
    const read = async () => {
      const handle = client.branch({ agentId, sessionId, branchId });
      const { messages, before } = await handle.state({ last: 1000 });
      let all = messages;
      let cursor = before;
      while (cursor !== undefined && !isStale) {
        const page = await handle.messages({ before: cursor, last: 1000 });
        all = [...page.messages, ...all];
        cursor = page.before;
      }
      return { messages: all };
    };
    read().then(
      (side) => isStale || setKnown({ branchId, side }),
      (error: unknown) => isStale || setKnown({ branchId, error: sentenceOf(error) }),
    );
    return () => {
      isStale = true;
    };
  }, [client, agentId, sessionId, branchId]);
  return known?.branchId === branchId ? known : {};
}
