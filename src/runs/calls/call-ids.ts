// CallIds: the ids of one reply's calls. Results, answers and events are found by call id, so servers that begin to number
// anew with every reply, or within one, get ids of our own. They are given before a part is shown: what is shown live and
// what is written have the same.

import { callsOf, type Message, type Part } from "../../events/index.ts";
import type { ModelPart } from "../../models/index.ts";

export class CallIds {
  readonly #messageId: string;
  readonly #earlier: readonly Message[];
  readonly #turn: TakenIds;
  #before: ReadonlySet<string> | undefined;
  readonly #taken = new Set<string>();
  /** The calls whose input has begun and that were not asked for yet, by the id the server gave. */
  readonly #begun = new Map<string, string[]>();

  /** For a message of a turn that has these already; `turn` is the turn's own. */
  constructor(messageId: string, earlier: readonly Message[], turn = new TakenIds()) {
    this.#messageId = messageId;
    this.#earlier = earlier;
    this.#turn = turn;
  }

  /** The part of a model's stream, under the id of the call it belongs to. */
  ofStream(part: ModelPart): ModelPart {
    switch (part.type) {
      case "tool-input-start":
        // What the provider runs itself has its results from there, under its own ids.
        return "providerExecuted" in part && part.providerExecuted ? part : renamed(part, this.#begin(part.id));
      case "tool-input-delta":
      case "tool-input-end":
        return renamed(part, this.#begun.get(part.id)?.at(-1) ?? part.id);
      case "tool-call": {
        if (part.providerExecuted) return part;
        const toolCallId = this.#begun.get(part.toolCallId)?.shift() ?? this.#next(part.toolCallId);
        return toolCallId === part.toolCallId ? part : { ...part, toolCallId };
      }
      default:
        return part;
    }
  }

  /** The parts of a whole message. */
  ofMessage(parts: readonly Part[]): readonly Part[] {
    const calls = new Set<Part>(callsOf({ role: "assistant", content: parts }));
    return parts.map((part) =>
      part.type === "tool-call" && calls.has(part) ? { ...part, toolCallId: this.#next(part.toolCallId) } : part,
    );
  }

  #begin(given: string): string {
    const id = this.#next(given);
    const begun = this.#begun.get(given);
    if (begun) begun.push(id);
    else this.#begun.set(given, [id]);
    return id;
  }

  #next(given: string): string {
    // Looked for when the first call comes: most replies have none.
    this.#before ??= this.#turn.of(this.#earlier);
    const earlier = this.#before;
    const own = `${this.#messageId}-${given}`;
    let id = given || own;
    for (let n = 1; earlier.has(id) || this.#taken.has(id); n++) id = n === 1 ? own : `${own}-${n}`;
    this.#taken.add(id);
    return id;
  }
}

/** The call ids of a turn's messages. A turn mostly grows, so only what came since is looked at. */
export class TakenIds {
  readonly #messages: Message[] = [];
  #ids = new Set<string>();

  of(messages: readonly Message[]): ReadonlySet<string> {
    const known = this.#messages;
    const isSame = known.length <= messages.length && known.every((message, i) => message === messages[i]);
    if (!isSame) {
      known.length = 0;
      this.#ids = new Set();
    }
    for (let i = known.length; i < messages.length; i++) {
      known.push(messages[i]!);
      for (const { toolCallId } of callsOf(messages[i]!)) this.#ids.add(toolCallId);
    }
    return this.#ids;
  }
}

function renamed<P extends ModelPart & { readonly id: string }>(part: P, id: string): P {
  return part.id === id ? part : { ...part, id };
}
