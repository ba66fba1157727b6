// A tool call and its result, in one card.

import { useState } from "react";
import type { ToolResultPart } from "../data/bough.ts";
import { Button } from "../ui/button.tsx";
import { Json } from "../ui/json.tsx";
import { duration } from "../ui/time.ts";
import { ChildConversation } from "./child.tsx";
import { useRowActions } from "./context.tsx";
import type { CallRow } from "./rows.ts";

type State = "running" | "done" | "failed" | "waiting" | "denied" | "skipped" | "cut";

const signs: Readonly<Record<State, readonly [string, string]>> = {
  running: ["…", "running"],
  done: ["✓", "done"],
  failed: ["✕", "failed"],
  waiting: ["?", "waits for you"],
  denied: ["⊘", "denied"],
  skipped: ["⊘", "not executed"],
  cut: ["⊘", "no result yet"],
};

const foldedFrom = 4;

export function ToolCalls({ calls, isOpenTurn }: { calls: readonly CallRow[]; isOpenTurn: boolean }) {
  const [isUnfolded, unfold] = useState(false);
  if (calls.length < foldedFrom || isUnfolded || isOpenTurn) {
    return calls.map((row) => <ToolCard key={row.call.toolCallId} row={row} isOpenTurn={isOpenTurn} />);
  }
  const failed = calls.filter(({ result }) => result && stateOfResult(result) !== "done").length;
  return (
    <button type="button" className="folded" onClick={() => unfold(true)}>
      {calls.length} calls: {[...new Set(calls.map(({ call }) => call.toolName))].join(", ")}
      {failed > 0 && <span className="bad">{failed} not done</span>}
    </button>
  );
}

function ToolCard({ row: { call, result }, isOpenTurn }: { row: CallRow; isOpenTurn: boolean }) {
  const { questionOf, callFact, showChild } = useRowActions();
  const [isOpen, setOpen] = useState(false);
  const question = questionOf(call.toolCallId);
  const fact = callFact(call.toolCallId);
  const state: State = result ? stateOfResult(result) : question ? "waiting" : isOpenTurn ? "running" : "cut";
  const [sign, word] = signs[state];
  const ms =
    fact?.startedAt !== undefined && fact.returnedAt !== undefined ? fact.returnedAt - fact.startedAt : undefined;
  const { child } = fact ?? {};
  return (
    <details className={`call ${state}`} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span className="sign" role="img" aria-label={word}>
          {sign}
        </span>
        <b>{call.toolName}</b>
        <code>{brief(call.input)}</code>
        <span className="quiet">{state === "done" ? (ms === undefined ? "" : duration(ms)) : word}</span>
      </summary>
      {isOpen && (
        <div className="call-body">
          <Json name="arguments" value={call.input} />
          {result && <Result result={result} />}
          {child && (
            <>
              <ChildConversation child={child} />
              <Button onClick={() => showChild(child)}>Open the child’s branch</Button>
            </>
          )}
        </div>
      )}
    </details>
  );
}

function Result({ result }: { result: ToolResultPart }) {
  const { output } = result;
  const value = (output as { value?: unknown }).value;
  if (typeof value === "string") {
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with keys
      <pre className="result" tabIndex={0}>
        {value}
      </pre>
    );
  }
  if (output.type === "execution-denied")
    return <p className="result">{String((output as { reason?: unknown }).reason ?? "denied")}</p>;
  return <Json name="result" value={value ?? output} />;
}

function stateOfResult({ output }: ToolResultPart): State {
  const { type } = output;
  if (type === "execution-denied") return "denied";
  if (type === "error-text" || type === "error-json") {
    return /not executed/i.test(String((output as { value?: unknown }).value)) ? "skipped" : "failed";
  }
  return "done";
}

function brief(input: unknown): string {
  const text = JSON.stringify(input) ?? "";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
