// Rows: what the conversation draws, one for each message that people see. A result is drawn with its call, so messages of tools have no
// row of their own. A row whose calls all have results never changes again and stays the same object: it is not drawn again.

import {
  type BranchView,
  callsOf,
  type Message,
  type PendingInteraction,
  type StreamingMessage,
  type ToolCallPart,
  type ToolResultPart,
} from "../data/bough.ts";

export interface CallRow {
  readonly call: ToolCallPart;
  readonly result?: ToolResultPart;
}

export interface MessageRow {
  readonly kind: "message";
  readonly key: string;
  readonly message: Message;
  /** Its place among the messages that people see. */
  readonly index: number;
  readonly calls: readonly CallRow[];
  readonly isSettled: boolean;
}

/** What models see instead of the messages before it, or what was put in their place. */
export interface CompactionRow {
  readonly kind: "compaction";
  readonly key: string;
  readonly id: string;
  readonly count: number;
  readonly isHard: boolean;
  readonly text: string;
}

export interface DraftRow {
  readonly kind: "draft";
  readonly key: string;
  readonly draft: StreamingMessage;
}

/** How a turn ended that did not complete. */
export interface EndRow {
  readonly kind: "end";
  readonly key: string;
  readonly status: "interrupted" | "failed";
  readonly sentence: string;
  /** The input that could be tried again. */
  readonly inputId: string | undefined;
}

/** The end of a branch, where others go on. */
export interface TipRow {
  readonly kind: "tip";
  readonly key: string;
}

export type Row = MessageRow | CompactionRow | DraftRow | EndRow | TipRow;

/** All messages that people see at a position, those of the open turn included. */
export function visibleMessages(view: BranchView): readonly Message[] {
  const unclosed = [...view.staged, ...(view.open ? [view.open] : [])].flatMap(({ messages }) => messages);
  return [...(view.shown ?? view.messages), ...unclosed];
}

/** Makes rows again and again, the same ones for what has not changed. */
export class Rows {
  #made = new Map<string, MessageRow>();

  make(messages: readonly Message[], firstIndex: number, view: BranchView | undefined): Row[] {
    const results = resultsOf(messages);
    const endings = view ? endingsOf(view, messages) : new Map<string, EndRow>();
    const compactions = view ? compactionsOf(view) : new Map<string, CompactionRow[]>();
    const made = new Map<string, MessageRow>();
    const rows: Row[] = [];
    for (const [i, message] of messages.entries()) {
      if (message.role !== "tool") {
        const row = this.#row(message, firstIndex + i, results);
        made.set(message.id, row);
        rows.push(row);
      }
      rows.push(...(compactions.get(message.id) ?? []));
      const ending = endings.get(message.id);
      if (ending) rows.push(ending);
    }
    this.#made = made;
    return rows;
  }

  #row(message: Message, index: number, results: ReadonlyMap<string, ToolResultPart>): MessageRow {
    const known = this.#made.get(message.id);
    if (known?.isSettled && known.index === index && known.message.partial === message.partial) return known;
    const calls = allCallsOf(message).map((call): CallRow => {
      const result = results.get(call.toolCallId);
      return { call, ...(result && { result }) };
    });
    const isSettled = calls.every(({ call, result }) => result !== undefined || call.providerExecuted === true);
    return { kind: "message", key: message.id, message, index, calls, isSettled };
  }
}

function allCallsOf(message: Message): readonly ToolCallPart[] {
  if (message.role !== "assistant" || typeof message.content === "string") return callsOf(message);
  return message.content.filter((part): part is ToolCallPart => part.type === "tool-call");
}

function resultsOf(messages: readonly Message[]): ReadonlyMap<string, ToolResultPart> {
  const results = new Map<string, ToolResultPart>();
  for (const { content } of messages) {
    if (typeof content === "string") continue;
    for (const part of content) {
      if (part.type === "tool-result") results.set((part as ToolResultPart).toolCallId, part as ToolResultPart);
    }
  }
  return results;
}

/** Turns that were cut off, by their last message. */
function endingsOf(view: BranchView, messages: readonly Message[]): ReadonlyMap<string, EndRow> {
  const endings = new Map<string, EndRow>();
  const bad = new Map(view.turns.filter(({ status }) => status !== "committed").map((turn) => [turn.id, turn]));
  if (bad.size === 0) return endings;
  const lasts = new Map<string, { last: string; input: string | undefined }>();
  for (const { id, turnId, role } of messages) {
    if (bad.has(turnId))
      lasts.set(turnId, { last: id, input: lasts.get(turnId)?.input ?? (role === "user" ? id : undefined) });
  }
  for (const [turnId, { last, input }] of lasts) {
    const turn = bad.get(turnId)!;
    const status = turn.status === "failed" ? "failed" : "interrupted";
    const error = turn.error as { message?: string; code?: string } | undefined;
    const why = error?.message ?? turn.reason;
    const sentence =
      status === "failed" ? `This turn failed${why ? `: ${why}` : "."}` : `Stopped${why ? ` (${why})` : ""}.`;
    endings.set(last, { kind: "end", key: `end-${turnId}`, status, sentence, inputId: input });
  }
  return endings;
}

/** Compactions in force, by the last message that they are about (soft) or that they show (hard). */
function compactionsOf(view: BranchView): ReadonlyMap<string, CompactionRow[]> {
  const rows = new Map<string, CompactionRow[]>();
  for (const { id, from, to, first, last, retention, replacements } of view.overlays) {
    const isHard = retention === "hard";
    const text = replacements
      .map(({ content }) =>
        typeof content === "string" ? content : content.map((part) => ("text" in part ? part.text : "")).join(""),
      )
      .join("\n\n");
    const anchor = isHard ? (replacements.at(-1)?.id ?? first) : last.replace(/\.tools$/, "");
    const row: CompactionRow = { kind: "compaction", key: `compaction-${id}`, id, count: to - from, isHard, text };
    rows.set(anchor, [...(rows.get(anchor) ?? []), row]);
  }
  return rows;
}

/** The question about a call, if one waits. */
export function questionsByCall(questions: readonly PendingInteraction[]): ReadonlyMap<string, PendingInteraction> {
  return new Map(
    questions.filter(({ callId }) => callId !== undefined).map((question) => [question.callId!, question]),
  );
}
