// Drafts: messages in the making, from deltas and snapshots. They are shown until their fact is there, and count for nothing.
//   Drafts-1. What is shown of a message is what was said of it, whole: a snapshot replaces, deltas add.
//   Drafts-2. After a connection was lost, a draft that the new one does not show is void.

import type { BoughEvent } from "../events/index.ts";
import type { MessageSnapshot } from "../wire/frames.ts";

/** A message that is being written, as far as it is known. */
export type StreamingMessage = Pick<MessageSnapshot, "messageId" | "turnId" | "text" | "reasoning" | "toolInputs">;

export class Drafts {
  #drafts = new Map<string, StreamingMessage>();
  #stale = new Set<string>();

  /** In the order in which they began; a new array after every change. */
  list: readonly StreamingMessage[] = [];

  /** A new connection begins: Drafts-2. */
  connected(): void {
    this.#stale = new Set(this.#drafts.keys());
  }

  /** The new connection has shown what there is. */
  ready(): void {
    for (const messageId of this.#stale) this.#drafts.delete(messageId);
    if (this.#stale.size > 0) this.#changed();
    this.#stale.clear();
  }

  snapshot(message: MessageSnapshot): void {
    this.#stale.delete(message.messageId);
    this.#put(message);
  }

  /** Applies an event to the messages being streamed; true if that changed something. */
  event(event: BoughEvent): boolean {
    const before = this.list;
    if (event.type === "text-start" || event.type === "reasoning-start") this.#put(this.#of(event));
    else if (event.type === "text-delta") this.#add(event, { text: event.text });
    else if (event.type === "reasoning-delta") this.#add(event, { reasoning: event.text });
    else if (event.type === "tool-input-start") this.#toolInput(event, event.toolName);
    else if (event.type === "tool-input-delta") this.#toolInput(event, undefined, event.text);
    else if (event.type === "message.added") this.#drop(event.id);
    else if (event.type === "model-retry") this.#drop(event.messageId);
    else if (closing.has(event.type)) this.clear();
    return this.list !== before;
  }

  clear(): void {
    if (this.#drafts.size === 0) return;
    this.#drafts.clear();
    this.#changed();
  }

  #add(event: Delta, { text = "", reasoning = "" }: { text?: string; reasoning?: string }): void {
    const draft = this.#of(event);
    this.#put({ ...draft, text: draft.text + text, reasoning: draft.reasoning + reasoning });
  }

  #toolInput(event: Delta & { callId: string }, toolName?: string, text = ""): void {
    const draft = this.#of(event);
    const known = draft.toolInputs.find(({ callId }) => callId === event.callId);
    const { callId } = event;
    const input = { callId, toolName: toolName ?? known?.toolName ?? "", text: (known?.text ?? "") + text };
    const toolInputs = known
      ? draft.toolInputs.map((each) => (each === known ? input : each))
      : [...draft.toolInputs, input];
    this.#put({ ...draft, toolInputs });
  }

  #of({ messageId, turnId }: Delta): StreamingMessage {
    const known = this.#drafts.get(messageId);
    return known ?? { messageId, ...(turnId && { turnId }), text: "", reasoning: "", toolInputs: [] };
  }

  #put({ messageId, turnId, text, reasoning, toolInputs }: StreamingMessage): void {
    this.#drafts.set(messageId, { messageId, ...(turnId && { turnId }), text, reasoning, toolInputs });
    this.#changed();
  }

  #drop(messageId: string): void {
    if (this.#drafts.delete(messageId)) this.#changed();
  }

  #changed(): void {
    this.list = [...this.#drafts.values()];
  }
}

type Delta = { readonly messageId: string; readonly turnId?: string };

const closing = new Set<string>(["turn.committed", "turn.staged", "turn.ended", "turn.discarded", "run-end"]);
