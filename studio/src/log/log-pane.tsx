// The log: every fact of the branch, filtered by family and text; a click shows the conversation as it was then.

import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Fact, UnknownFact } from "../data/bough.ts";
import type { BranchLog } from "../data/branch-log.ts";
import { Json } from "../ui/json.tsx";
import { clockTime } from "../ui/time.ts";
import { VList, type VListHandle } from "../ui/virtual.tsx";

const families = ["turn", "message", "tool", "interaction", "branch", "history", "input", "state", "task"] as const;

interface LogPaneProps {
  readonly log: BranchLog;
  readonly version: number;
  readonly seq: number;
  readonly onGo: (seq: number | undefined) => void;
}

export const LogPane = memo(function LogPane({ log, version, seq, onGo }: LogPaneProps) {
  const [family, setFamily] = useState<string>();
  const [text, setText] = useState("");
  const [opened, setOpened] = useState<number>();
  const list = useRef<VListHandle>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: made again when the log has grown
  const facts = useMemo(() => select(log.facts, family, text.trim().toLowerCase()), [log, version, family, text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: follows the position
  useLayoutEffect(() => {
    const index = facts.findIndex((fact) => fact.seq >= seq);
    if (facts.length > 0) list.current?.scrollToIndex(index < 0 ? facts.length - 1 : index, { align: "nearest" });
  }, [seq]);
  return (
    <div className="log">
      <div className="log-filter">
        <input
          type="search"
          aria-label="Find in the log"
          placeholder="Find in the log"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <select
          aria-label="Which facts"
          value={family ?? ""}
          onChange={(event) => setFamily(event.target.value || undefined)}
        >
          <option value="">all facts</option>
          {families.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </div>
      <VList ref={list} className="facts" data={facts}>
        {(fact) => (
          <FactRow
            key={fact.seq}
            fact={fact}
            isHere={fact.seq === seq}
            isOpen={fact.seq === opened}
            onOpen={() => setOpened((now) => (now === fact.seq ? undefined : fact.seq))}
            onGo={() => onGo(fact.seq >= log.length ? undefined : fact.seq)}
          />
        )}
      </VList>
    </div>
  );
});

interface FactRowProps {
  readonly fact: Fact | UnknownFact;
  readonly isHere: boolean;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
  readonly onGo: () => void;
}

function FactRow({ fact, isHere, isOpen, onOpen, onGo }: FactRowProps) {
  return (
    <div className={`fact of-${fact.type.split(".")[0]}${isHere ? " here" : ""}`}>
      <button type="button" onClick={onGo} title="Show the conversation as it was then">
        <span className="number">{fact.seq}</span>
        <span className="fact-words">
          <b>{fact.type}</b>
          <span className="quiet one-line">{gistOf(fact as Fact)}</span>
        </span>
        <span className="number">{clockTime(fact.at, { seconds: true })}</span>
      </button>
      <button
        type="button"
        className="fact-more"
        aria-expanded={isOpen}
        aria-label={`Fact ${fact.seq} as JSON`}
        onClick={onOpen}
      >
        {"{ }"}
      </button>
      {isOpen && <Json value={fact} />}
    </div>
  );
}

function select(facts: readonly (Fact | UnknownFact)[], family: string | undefined, text: string) {
  if (family === undefined && text === "") return facts.slice();
  return facts.filter((fact) => {
    if (family !== undefined && !fact.type.startsWith(`${family}.`)) return false;
    return text === "" || JSON.stringify(fact).toLowerCase().includes(text);
  });
}

/** What a fact says, in a line. */
function gistOf(fact: Fact): string {
  switch (fact.type) {
    case "message.added":
      return `${fact.role}: ${wordsOf(fact.content)}`;
    case "tool.returned":
      return `${fact.toolName} → ${short((fact.output as { value?: unknown }).value ?? fact.output.type)}`;
    case "interaction.opened":
      return `${fact.kind} ${String((fact.request as { toolName?: unknown }).toolName ?? "")}`;
    case "interaction.answered":
      return `${short(fact.answer)}${fact.by === undefined ? "" : ` by ${fact.by}`}`;
    case "turn.committed":
      return `${fact.usage?.totalTokens ?? "–"} tokens`;
    case "turn.ended":
      return `${fact.status} ${fact.error?.message ?? fact.reason ?? ""}`;
    case "branch.forked":
      return `from ${fact.from.branchId} at ${fact.from.seq}`;
    case "branch.reverted":
      return `to ${fact.to}`;
    case "history.compacted":
      return `${fact.to - fact.from} messages, ${fact.retention}`;
    case "input.queued":
      return wordsOf(fact.messages.map(({ content }) => content).join(" "));
    default:
      return "";
  }
}

function wordsOf(content: unknown): string {
  if (typeof content === "string") return content.slice(0, 160);
  if (!Array.isArray(content)) return "";
  const words = content.map(
    (part: { text?: string; toolName?: string; type: string }) => part.text ?? `→ ${part.toolName ?? part.type}`,
  );
  return words.join(" ").slice(0, 160);
}

function short(value: unknown): string {
  return (JSON.stringify(value) ?? "").slice(0, 160);
}
