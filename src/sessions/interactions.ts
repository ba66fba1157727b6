// Answering: an interaction is a question in the log, and its answer is one more fact, written by whoever has it: the
// process that runs the turn, another one, or one that comes after a crash. It takes no run slot.

import { BoughError } from "../base/errors.ts";
import { encodeJson, factLimits, type JsonObject } from "../base/json.ts";
import { answerProblem } from "../events/answers.ts";
import type { Fact } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import { turnPatch } from "../projection/header.ts";
import type { Interaction } from "../projection/index.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";

/**
 * Answers an open interaction, exactly once: of two answers, one gets `interaction_closed`. `interaction_not_found` when
 * the branch never had it.
 */
export async function answerInteraction(
  context: Context,
  scope: Scope,
  interactionId: string,
  answer: JsonObject,
  options: { by?: string } = {},
): Promise<Fact> {
  const ref = await resolveBranch(context, scope);
  checkAnswer(answer);
  for (;;) {
    const { view } = await context.views.load(ref);
    const open = view.interactions.find(({ id }) => id === interactionId);
    const now = context.clock.now();
    if (!open) throw await whyNotOpen(context, ref, interactionId);
    if (isOver(open, now)) throw closed(ref, interactionId, "expired");
    // An answer counts once: one that can't be understood must not be it.
    const problem = answerProblem(open.kind, answer);
    if (problem) throw new BoughError("invalid_argument", problem, { data: { ...ref, interactionId } });
    const by = options.by === undefined ? {} : { by: options.by };
    const draft = {
      type: "interaction.answered",
      id: context.ids.next(),
      at: now,
      interactionId,
      answer,
      ...by,
    } as const;
    try {
      const header = turnPatch(view, [draft]);
      return (await context.journal.append(ref, [draft], { expectedSeq: view.seq, header })).facts[0]!;
    } catch (error) {
      // Something else was written; perhaps the answer of another.
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}

/** As much as a tool may return: a client's answer is its tool's result, and stands in a fact of its own and the tool's. */
const answerLimits = { ...factLimits, depth: factLimits.depth - 1, bytes: factLimits.bytes - 64 * 1024 };

function checkAnswer(answer: unknown): void {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw new BoughError("invalid_argument", "An answer is an object.", { data: { what: "An answer" } });
  }
  encodeJson(answer, "An answer", answerLimits);
}

/** Whether nobody may answer any more. */
export function isOver({ expiresAt }: Interaction, now: number): boolean {
  return expiresAt !== undefined && now >= expiresAt;
}

/** How far back a closed interaction is looked for, only to say that it is closed. */
const lookBack = 1000;

/** The refusal of an answer to what is not open: `interaction_closed`, or `interaction_not_found`. */
export async function whyNotOpen(context: Context, ref: BranchRef, interactionId: string): Promise<BoughError> {
  const { facts } = await context.journal.read(ref, { reverse: true, limit: lookBack });
  const settled = facts.find((fact) => "interactionId" in fact && fact.interactionId === interactionId);
  if (settled) return closed(ref, interactionId, settled.type === "interaction.answered" ? "answered" : "expired");
  const opened = facts.find((fact) => fact.type === "interaction.opened" && fact.id === interactionId);
  if (opened) return closed(ref, interactionId, "turn-closed");
  const sentence = `Branch "${ref.branchId}" has no interaction "${interactionId}".`;
  return new BoughError("interaction_not_found", sentence, { data: { ...ref, interactionId } });
}

const whyClosed = {
  answered: "was answered already",
  expired: "expired",
  "turn-closed": "belongs to a turn that is closed",
};

function closed(ref: BranchRef, interactionId: string, why: keyof typeof whyClosed): BoughError {
  return new BoughError("interaction_closed", `Interaction "${interactionId}" ${whyClosed[why]}.`, {
    data: { ...ref, interactionId, why },
  });
}
