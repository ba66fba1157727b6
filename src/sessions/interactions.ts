// Answering: an interaction is a question in the log, and its answer is one more fact, written by any process: the one that
// runs the turn, another one, or one that comes after a crash. It takes no run slot.

import { BoughError } from "../base/errors.ts";
import { encodeJson, type JsonObject, outputLimits } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { answerProblem } from "../events/answers.ts";
import { interactionAnswered } from "../events/drafts.ts";
import type { Fact } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { Interaction } from "../projection/index.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";

const answerKeys = optionKeys<{ by?: string }>({ by: true });

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
  checkOptions("The options of answer", options, answerKeys);
  const ref = await resolveBranch(context, scope);
  checkAnswer(answer);
  for (;;) {
    const { view } = await context.views.loadForRun(ref);
    const open = view.interactions.find(({ id }) => id === interactionId);
    const now = context.clock.now();
    if (!open) throw await whyNotOpen(context, ref, interactionId);
    if (isOver(open, now)) throw closed(ref, interactionId, "expired");
    // An answer counts once: one that can't be understood must not be it.
    const problem = answerProblem(open.kind, answer);
    if (problem) throw new BoughError("invalid_argument", problem, { data: { ...ref, interactionId } });
    const answered = interactionAnswered(context, { interactionId, answer, by: options.by });
    try {
      return (await context.views.append(ref, view, [answered], { expectedSeq: view.seq })).facts[0]!;
    } catch (error) {
      // Something else was written; perhaps the answer of another.
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}

function checkAnswer(answer: unknown): void {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw new BoughError("invalid_argument", "An answer must be an object.", { data: { what: "An answer" } });
  }
  // A client's answer becomes its tool's result, so it may be as large as one.
  encodeJson(answer, "An answer", outputLimits);
}

/** Whether the interaction can no longer be answered. */
export function isOver({ expiresAt }: Interaction, now: number): boolean {
  return expiresAt !== undefined && now >= expiresAt;
}

/** How many facts to search for a closed interaction, to report `interaction_closed` rather than `interaction_not_found`. */
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
  answered: "has already been answered",
  expired: "has expired",
  "turn-closed": "belongs to a closed turn",
};

function closed(ref: BranchRef, interactionId: string, why: keyof typeof whyClosed): BoughError {
  return new BoughError("interaction_closed", `Interaction "${interactionId}" ${whyClosed[why]}.`, {
    data: { ...ref, interactionId, why },
  });
}
