// Messages in progress, as far as they are written: what a reader that joins in the middle gets first.

import type { BoughEvent } from "../events/index.ts";
import { branchKey } from "../log/branch-key.ts";
import type { BranchRef } from "../log/store.ts";
import type { MessageSnapshot } from "../wire/index.ts";

interface Running {
  readonly address: Pick<MessageSnapshot, "sessionId" | "branchId" | "runId" | "turnId" | "messageId">;
  text: string;
  reasoning: string;
  readonly toolInputs: Map<string, { callId: string; toolName: string; text: string }>;
}

/** Events that only show a message which is a fact later on: obsolete once that fact is shown. */
export function isDraftEvent({ type }: Pick<BoughEvent, "type">): boolean {
  return /^(text|reasoning|tool-input)-/.test(type);
}

/** Nothing of what a run was writing is written on after these. */
const ends: ReadonlySet<string> = new Set(["run-end", "turn.resumed", "turn.ended"]);

export class RunningMessages {
  /** By branch, then by message. */
  readonly #branches = new Map<string, Map<string, Running>>();

  note(event: BoughEvent): void {
    const key = branchKey(event);
    if (ends.has(event.type)) this.#branches.delete(key);
    else if (event.type === "message.added") this.#forget(key, event.id);
    else if (event.type === "model-retry") this.#forget(key, event.messageId);
    else if (event.type === "text-delta") this.#of(key, event).text += event.text;
    else if (event.type === "reasoning-delta") this.#of(key, event).reasoning += event.text;
    else if (event.type === "tool-input-start") {
      const { callId, toolName } = event;
      this.#of(key, event).toolInputs.set(callId, { callId, toolName, text: "" });
    } else if (event.type === "tool-input-delta") {
      const input = this.#of(key, event).toolInputs.get(event.callId);
      if (input) input.text += event.text;
    }
  }

  of(ref: BranchRef): MessageSnapshot[] {
    const running = [...(this.#branches.get(branchKey(ref))?.values() ?? [])];
    return running.map(({ address, text, reasoning, toolInputs }) => {
      const inputs = [...toolInputs.values()].map((each) => ({ ...each }));
      return { ...address, text, reasoning, toolInputs: inputs };
    });
  }

  /** Takes over a message in progress from another process. */
  take({ text, reasoning, toolInputs, ...address }: MessageSnapshot): void {
    const key = branchKey(address);
    const messages = this.#branches.get(key) ?? new Map<string, Running>();
    this.#branches.set(key, messages);
    const inputs = new Map(toolInputs.map((input) => [input.callId, { ...input }]));
    messages.set(address.messageId, { address, text, reasoning, toolInputs: inputs });
  }

  #of(key: string, event: BoughEvent & { messageId: string }): Running {
    const messages = this.#branches.get(key) ?? new Map<string, Running>();
    this.#branches.set(key, messages);
    const known = messages.get(event.messageId);
    if (known) return known;
    const { sessionId, branchId, runId, turnId, messageId } = event;
    const address = { sessionId, branchId, messageId, ...(runId && { runId }), ...(turnId && { turnId }) };
    const running: Running = { address, text: "", reasoning: "", toolInputs: new Map() };
    messages.set(messageId, running);
    return running;
  }

  #forget(key: string, messageId: string): void {
    const messages = this.#branches.get(key);
    messages?.delete(messageId);
    if (messages?.size === 0) this.#branches.delete(key);
  }
}
