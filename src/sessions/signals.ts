// Signals: what anybody tells an execution, by name. A signal is a fact, and takes no run slot; it may come before it is waited
// for.
//   SessionsSignals-1. A signal counts once: the same id again writes nothing.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { type Json, outputLimits, ownJson, writeJson } from "../base/json.ts";
import { anything, checkOptions, optionTable, text } from "../base/options.ts";
import { signalReceived } from "../events/drafts.ts";
import type { BranchRef } from "../log/store.ts";
import type { Context } from "./context.ts";

/** A signal to an execution. */
export interface Signal {
  readonly name: string;
  /** JSON for the step that waits for it. */
  readonly payload?: Json;
  /** Idempotency key (default: a new id). */
  readonly id?: string;
  /** Who sends it. */
  readonly by?: string;
}

/** What became of a signal. */
export interface Signalled {
  readonly signalId: string;
  /** False when it was received before. */
  readonly isNew: boolean;
}

const signalTable = optionTable<Signal>({ name: text, payload: anything, id: text, by: text });

/** Writes a signal to a branch with an open turn; `nothing_to_resume` if there is none. */
export async function sendSignal(context: Context, ref: BranchRef, signal: Signal): Promise<Signalled> {
  checkOptions("A signal", signal, signalTable);
  const { name, payload, id = context.ids.next(), by } = signal;
  checkId(name, "signal");
  checkId(id, "signal");
  const own = payload === undefined ? undefined : ownJson(payload, "The payload of a signal", outputLimits);
  if (own !== undefined) writeJson(own, "The payload of a signal", outputLimits);
  for (;;) {
    const { view } = await context.views.loadForRun(ref);
    if (!view.open) {
      const sentence = `Branch "${ref.branchId}" has no open turn that could take a signal.`;
      throw new BoughError("nothing_to_resume", sentence, { data: { ...ref, signal: name } });
    }
    const draft = signalReceived(context, id, {
      name,
      ...(own !== undefined && { payload: own }),
      ...(by !== undefined && { by }),
    });
    try {
      // Held to the view: what wakes a turn that sleeps is in its row, too.
      const { facts } = await context.views.append(ref, view, [draft], { expectedSeq: view.seq });
      return { signalId: id, isNew: facts[0]!.seq > view.seq };
    } catch (error) {
      // SessionsSignals-1.
      if (BoughError.is(error, "event_conflict")) return { signalId: id, isNew: false };
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}
