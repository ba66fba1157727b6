// Screen: the output of a chat. This one is for people; json-screen.ts is for scripts.

import { sizeText } from "../../base/size-text.ts";
import type { BranchLine, SessionLine } from "../../chat/conversation.ts";
import type { Form, Question } from "../../chat/questions.ts";
import { moment, oneLine, SafeStream, safeText, visible } from "../../chat/text.ts";
import type { BoughEvent, Message } from "../../events/index.ts";
import { textOf } from "../../events/index.ts";
import type { ContextUsage, QueuedInputBody, TaskBody } from "../../wire/index.ts";
import { count, type Terminal } from "../terminal.ts";
import type { Attachment } from "./attachments.ts";
import { WordFlow } from "./word-flow.ts";

/** The result of a slash command. */
export type Finding =
  | { readonly type: "sessions"; readonly sessions: readonly SessionLine[] }
  | { readonly type: "branches"; readonly branches: readonly BranchLine[]; readonly current: string }
  | { readonly type: "history"; readonly messages: readonly Message[]; readonly before: number }
  | { readonly type: "help"; readonly commands: readonly { readonly usage: string; readonly summary: string }[] }
  | { readonly type: "place"; readonly sessionId: string; readonly branchId: string }
  | { readonly type: "context"; readonly usage: ContextUsage }
  | { readonly type: "attached"; readonly files: readonly Attachment[] }
  | { readonly type: "queue"; readonly inputs: readonly QueuedInputBody[] }
  | { readonly type: "tasks"; readonly tasks: readonly TaskBody[] }
  | { readonly type: "undone"; readonly messages: number; readonly said: string };

export interface Screen {
  /** Shows an event of the branch as it arrives. */
  show(event: BoughEvent): void;
  /** Shows a command's result; if it was not asked for, as a note. */
  tell(finding: Finding, options?: { readonly isAsked?: boolean }): void;
  ask(question: Question, form: Form): void;
  /** A line that is not part of the conversation. */
  note(text: string): void;
  problem(error: { readonly message: string; readonly code?: string }): void;
  /** Holds output back until `resume`, while the user types. */
  pause(): void;
  resume(): void;
}

export class TextScreen implements Screen {
  readonly #terminal: Terminal;
  /** Where everything but the agent's text goes: a pipe carries only that. */
  readonly #aside: (line: string) => void;
  /** The agent's name before its text; not shown in a pipe. */
  readonly #speaker: string | undefined;
  /** The text already shown of the current message, and its id. */
  #message = { id: "", text: "" };
  readonly #safe = new SafeStream();
  #flow: WordFlow | undefined;
  #isMidLine = false;
  #isReasoning = false;
  /** Reasoning that is held back in a pipe until it is complete. */
  #thought = "";
  #waiting: (() => void)[] | undefined;

  constructor({ terminal, agentId, isInteractive }: { terminal: Terminal; agentId: string; isInteractive: boolean }) {
    this.#terminal = terminal;
    this.#aside = isInteractive ? (line) => terminal.print(line) : (line) => terminal.note(line);
    this.#speaker = isInteractive ? visible(agentId) : undefined;
  }

  show(event: BoughEvent): void {
    this.#soon(() => this.#show(event));
  }

  pause(): void {
    this.#endLine();
    this.#waiting ??= [];
  }

  resume(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const show of waiting) show();
  }

  note(text: string): void {
    this.#soon(() => this.#line("dim", text));
  }

  problem({ message, code }: { message: string; code?: string }): void {
    this.#endLine();
    const reference = code === undefined || code === "invalid_argument" ? "" : ` (${code})`;
    this.#terminal.note(`${this.#terminal.paint("red", "error")}: ${visible(message)}${reference}`);
  }

  ask(_question: Question, { lines }: Form): void {
    for (const [i, line] of lines.entries()) this.#line("yellow", `${i === 0 ? "? " : "  "}${line}`);
  }

  tell(finding: Finding, { isAsked = true }: { isAsked?: boolean } = {}): void {
    const put = isAsked ? (line: string) => this.#terminal.print(line) : this.#aside;
    for (const line of this.#linesOf(finding)) put(line);
  }

  #soon(show: () => void): void {
    if (this.#waiting) this.#waiting.push(show);
    else show();
  }

  #show(event: BoughEvent): void {
    switch (event.type) {
      case "text-delta":
        this.#speak(event.messageId, event.text);
        break;
      case "reasoning-delta":
        this.#think(event.text);
        break;
      case "text-end":
      case "reasoning-end":
        this.#endLine();
        break;
      case "message.added":
        this.#added(event);
        break;
      case "tool-progress":
        this.#line("dim", `  ${visible(event.toolName)} … ${oneLine(event.output, this.#room)}`);
        break;
      case "tool-retry":
        this.#line("dim", `  ${visible(event.toolName)} failed and is retried: ${visible(event.error.message)}`);
        break;
      case "tool.returned":
        this.#returned(event);
        break;
      case "model-retry":
        this.#line("dim", `  the model call failed and is retried: ${visible(event.error.message)}`);
        break;
      case "compaction-start":
        this.#line("dim", `  the conversation is being shortened for the model (${event.tokens} tokens)`);
        break;
      case "compaction-end":
        this.#line("dim", `  shortened from ${event.before} to ${event.after} tokens; /history still has all of it`);
        break;
      case "compaction-skip":
        this.#line("dim", `  the conversation was not shortened: ${visible(event.why)}`);
        break;
      case "turn.resumed":
        this.#line("dim", "  resuming the turn");
        break;
      case "interaction.expired":
        this.#line(
          "dim",
          event.reason === "not needed" ? "  no answer is needed any more" : "  the question expired without an answer",
        );
        break;
      case "events-drop":
        this.#line("dim", "  some output arrived too fast and was skipped");
        break;
      case "turn.ended":
        this.#ended(event);
        break;
      case "turn.committed":
        this.#endLine();
        break;
    }
  }

  get #room(): number {
    return Math.max(this.#terminal.columns - 24, 30);
  }

  #speak(id: string, piece: string): void {
    if (this.#message.id !== id || this.#isReasoning) this.#endLine();
    if (this.#message.id !== id) this.#message = { id, text: "" };
    if (!this.#isMidLine) this.#begin();
    this.#message.text += piece;
    this.#put(this.#safe.write(piece));
    this.#isMidLine = true;
  }

  #begin(): void {
    if (this.#speaker === undefined) return;
    const { terminal, speaker } = { terminal: this.#terminal, speaker: this.#speaker };
    terminal.write(`${terminal.paint("green", speaker)} › `);
    const column = speaker.length + 3;
    this.#flow = new WordFlow({ write: (text) => terminal.write(text), width: terminal.columns, column });
  }

  #put(text: string): void {
    if (this.#flow) this.#flow.write(text);
    else this.#terminal.write(text);
  }

  #think(piece: string): void {
    if (!this.#isReasoning) this.#endLine();
    this.#isReasoning = true;
    if (this.#speaker === undefined) {
      this.#thought += safeText(piece);
      return;
    }
    this.#isMidLine = true;
    this.#terminal.write(this.#terminal.paint("dim", safeText(piece)));
  }

  /** Live events may be missed; stored ones never are. */
  #added({ id, role, content }: Extract<BoughEvent, { type: "message.added" }>): void {
    if (role !== "assistant") return;
    const text = textOf({ content });
    const shown = this.#message.id === id ? this.#message.text : "";
    if (text !== shown && text !== "") {
      if (!text.startsWith(shown)) this.#endLine();
      this.#speak(id, text.startsWith(shown) ? text.slice(shown.length) : text);
    }
    this.#endLine();
    for (const part of typeof content === "string" ? [] : content) {
      if (part.type !== "tool-call") continue;
      this.#line("dim", `> ${visible(part.toolName)} ${oneLine(part.input, this.#room)}`);
    }
  }

  #returned({ toolName, output }: Extract<BoughEvent, { type: "tool.returned" }>): void {
    const { type, value, reason } = output as { type: string; value?: unknown; reason?: unknown };
    const isBad = type.startsWith("error") || type === "execution-denied";
    const told = oneLine(value ?? reason ?? type, this.#room);
    this.#line(isBad ? "red" : "dim", `< ${visible(toolName)} ${type === "execution-denied" ? "denied: " : ""}${told}`);
  }

  #ended({ status, error, reason }: Extract<BoughEvent, { type: "turn.ended" }>): void {
    if (status === "interrupted") {
      this.#line("yellow", `(interrupted${reason && reason !== status ? `: ${visible(reason)}` : ""})`);
      return;
    }
    const { message = "The run failed.", code } = (error ?? {}) as { message?: string; code?: string };
    this.problem({ message, ...(code !== undefined && { code }) });
  }

  #line(style: "dim" | "red" | "yellow", text: string): void {
    this.#endLine();
    this.#aside(this.#terminal.paint(style, text));
  }

  #endLine(): void {
    this.#isReasoning = false;
    if (this.#thought !== "") this.#aside(this.#terminal.paint("dim", this.#thought));
    this.#thought = "";
    this.#put(this.#safe.end());
    this.#flow?.end();
    this.#flow = undefined;
    if (this.#isMidLine) this.#terminal.write("\n");
    this.#isMidLine = false;
  }

  #linesOf(finding: Finding): string[] {
    switch (finding.type) {
      case "sessions":
        if (finding.sessions.length === 0) return ["There are no sessions yet."];
        return finding.sessions.map(({ id, lastActivity, title }) => {
          const named = title === undefined ? "" : `  ${oneLine(title, this.#room)}`;
          return `${moment(lastActivity)}  ${visible(id)}${named}`;
        });
      case "branches":
        return treeLines(finding.branches, finding.current);
      case "history":
        return historyLines(finding, this.#room);
      case "help": {
        const width = Math.max(...finding.commands.map(({ usage }) => usage.length));
        return finding.commands.map(({ usage, summary }) => `${usage.padEnd(width)}  ${summary}`);
      }
      case "place":
        return [`Session ${visible(finding.sessionId)}, branch ${visible(finding.branchId)}.`];
      case "context":
        return contextLines(finding.usage);
      case "attached":
        if (finding.files.length === 0) return ["No files are attached."];
        return finding.files.map(
          ({ name, size }) => `${visible(name)}, ${sizeText(size)}: goes with your next message.`,
        );
      case "queue":
        if (finding.inputs.length === 0) return ["Nothing is queued."];
        return finding.inputs.map(
          (input, i) =>
            `${String(i + 1).padStart(4)}  ${moment(input.queuedAt)}  ${oneLine(saidIn(input), this.#room)}`,
        );
      case "tasks":
        if (finding.tasks.length === 0) return ["No background task goes on."];
        return finding.tasks.map(
          ({ startedAt, name, status }, i) =>
            `${String(i + 1).padStart(4)}  ${moment(startedAt)}  ${oneLine(name, this.#room)}${status === "waiting" ? " (waits for an answer)" : ""}`,
        );
      case "undone":
        return [`Reverted ${count(finding.messages, "message")}, starting with “${oneLine(finding.said, 60)}”.`];
    }
  }
}

function contextLines({ tokens, isEstimate, window, share, nextAt, ...usage }: ContextUsage): string[] {
  const of = window === undefined || share === undefined ? "" : ` of ${window} (${Math.round(share * 100)} %)`;
  const lines = [
    `${isEstimate ? "About " : ""}${tokens} tokens${of}.`,
    `The model sees ${count(usage.visible, "message")} for the ${usage.messages} of this branch.`,
  ];
  if (nextAt !== undefined) lines.push(`From ${nextAt} tokens on, the older part is shortened.`);
  if (usage.breaker.isOpen) lines.push("Shortening it has failed three times in a row and is not tried again.");
  return lines;
}

function treeLines(branches: readonly BranchLine[], current: string): string[] {
  const below = (parent: string | undefined, indent: string): string[] => {
    const here = branches.filter(({ forkedFrom }) => forkedFrom === parent);
    return here.flatMap(({ id, messages, shared }, i) => {
      const isLast = i === here.length - 1;
      const twig = parent === undefined ? "" : isLast ? "└─ " : "├─ ";
      const from = shared === undefined ? "" : `, forked after message ${shared}`;
      const deeper = parent === undefined ? "" : isLast ? "   " : "│  ";
      const line = `${id === current ? "*" : " "} ${indent}${twig}${visible(id)}  ${count(messages, "message")}${from}`;
      return [line, ...below(id, `${indent}${deeper}`)];
    });
  };
  return below(undefined, "");
}

function historyLines({ messages, before }: { messages: readonly Message[]; before: number }, width: number): string[] {
  if (messages.length === 0) return ["There are no messages yet."];
  return messages.map(
    (message, i) =>
      `${String(before + i + 1).padStart(4)}  ${message.role.padEnd(9)}  ${oneLine(gist(message), width)}`,
  );
}

/** A message on one line. */
function gist(message: Message): string {
  const text = textOf(message);
  if (typeof message.content === "string") return text;
  const calls = message.content.flatMap((part) => {
    if (part.type === "tool-call") return [`> ${part.toolName} ${JSON.stringify(part.input)}`];
    if (part.type === "tool-result")
      return [`< ${part.toolName} ${JSON.stringify((part.output as { value?: unknown }).value ?? part.output)}`];
    if (part.type === "file") return [`[${part.filename ?? part.mediaType}]`];
    return part.type === "text" || part.type === "reasoning" ? [] : [`[${part.type}]`];
  });
  return [text, ...calls].filter(Boolean).join(" ");
}

/** The text of a queued input. */
export function saidIn({ messages }: QueuedInputBody): string {
  return messages.map((message) => textOf(message)).join(" ");
}
