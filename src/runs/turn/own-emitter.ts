// OwnEmitter: how tools and hooks emit the event types that the program defined.
//   OwnEmitter-1. A kept event is shown after the store has acknowledged it, like every fact of the turn.
//   OwnEmitter-2. A call that runs again after a crash emits nothing that is recorded of it: its first so many events are skipped.

import type { Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import type { Ids } from "../../base/ids.ts";
import type { Json } from "../../base/json.ts";
import type { AnyDraft } from "../../events/codec.ts";
import { type Fact, isUnknown, type OwnEventDefinition, typeName, type UnknownFact } from "../../events/index.ts";
import { ownDraft } from "../../events/own-events.ts";
import { progressOf } from "../../tools/output.ts";
import type { RunPlan } from "../config.ts";
import type { Emitter } from "../emit.ts";
import { tellError } from "../redact-errors.ts";

/** What it needs of the turn. */
export interface OwnEmitterPort {
  readonly turnId: string;
  readonly plan: Pick<RunPlan, "events" | "redact">;
  readonly emitter: Emitter;
  /** Where a draft gets its id and its time. */
  readonly context: { readonly ids: Pick<Ids, "next">; readonly clock: Pick<Clock, "now"> };
  write(draft: AnyDraft): Promise<unknown>;
}

export class OwnEmitter {
  readonly #turn: OwnEmitterPort;
  /** How many events of a call and a type are in the log from runs before this one, and how many it emitted now. */
  readonly #recorded = new Map<string, number>();
  readonly #emitted = new Map<string, number>();

  constructor(turn: OwnEmitterPort) {
    this.#turn = turn;
  }

  /** Told of every fact of the turn that runs before this one wrote (OwnEmitter-2). */
  see(fact: Fact | UnknownFact): void {
    if (!isUnknown(fact)) return;
    const { callId } = fact.payload;
    if (typeof callId !== "string") return;
    const name = JSON.stringify([callId, typeName(fact)]);
    this.#recorded.set(name, (this.#recorded.get(name) ?? 0) + 1);
  }

  /** `emit` of a hook, or of the tool that works on a call. */
  emit(event: string | OwnEventDefinition, data: Json, callId?: string): undefined | Promise<void> {
    if (typeof event === "string") {
      this.#show(event, data);
      return undefined;
    }
    const emitting = this.#emit(event, data, callId);
    // A caller need not await it; a failure is reported either way.
    emitting.catch((error: unknown) => {
      const { emitter, plan } = this.#turn;
      emitter.live({ type: "error-report", source: "run", error: tellError(plan, error) });
    });
    return emitting;
  }

  async #emit(event: OwnEventDefinition, given: Json, callId: string | undefined): Promise<void> {
    const { plan, turnId } = this.#turn;
    if (plan.events.get(event.type) !== event) {
      const sentence = `The event "${event.type}" is not registered: pass it to createAgent({ events: [...] }).`;
      throw new BoughError("event_unknown", sentence, { data: { type: event.type } });
    }
    const name = JSON.stringify([callId, event.type]);
    const n = (this.#emitted.get(name) ?? 0) + 1;
    this.#emitted.set(name, n);
    const data = await checked(event, given);
    if (!event.kept) return this.#show(event.type, data);
    if (callId !== undefined && n <= (this.#recorded.get(name) ?? 0)) return;
    const ids = { turnId, ...(callId !== undefined && { callId }) };
    const { context } = this.#turn;
    const stamp = { id: context.ids.next(), at: context.clock.now() };
    await this.#turn.write(ownDraft(event, data, { ...stamp, ...ids }));
  }

  #show(name: string, data: Json): void {
    const { emitter } = this.#turn;
    // Readers elsewhere get it as JSON, whatever it is.
    if (emitter.isHeard) emitter.live({ type: "custom-emit", name, data: progressOf(data) });
  }
}

async function checked({ type, schema }: OwnEventDefinition, data: unknown): Promise<Json> {
  const result = await schema["~standard"].validate(data);
  if (!result.issues) return result.value;
  const [issue] = result.issues as { message?: string; path?: readonly unknown[] }[];
  const where = issue?.path?.map((each) => String(Object(each).key ?? each)).join(".");
  const sentence = `The data of "${type}" does not fit its schema${where ? ` at ${where}` : ""}: ${issue?.message ?? "invalid"}.`;
  throw new BoughError("event_invalid", sentence, { data: { type } });
}
