// Answering: an interaction is a question in the log, and its answer is one more fact, written by any process: the one that
// runs the turn, another one, or one that comes after a crash. It takes no run slot.

import { BoughError } from "../base/errors.ts";
import { encodeJson, type Json, type JsonObject, outputLimits } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import { answerProblem } from "../events/answers.ts";
import { interactionAnswered, interactionExpired } from "../events/drafts.ts";
import type { Draft, Fact } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { BranchView, Interaction } from "../projection/index.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";
import { storeOutput } from "./files.ts";

const answerKeys = optionKeys<{ by?: string }>({ by: true });

/**
 * Answers an open interaction, exactly once: of two answers, one gets `interaction_closed`. `interaction_not_found` when
 * the branch never had it.
 */
export async function answerInteraction(
  context: Context,
  scope: Scope,
  interactionId: string,
  given: JsonObject,
  options: { by?: string } = {},
): Promise<Fact> {
  checkOptions("The options of answer", options, answerKeys);
  const ref = await resolveBranch(context, scope);
  checkAnswer(given);
  let answer: JsonObject | undefined;
  for (;;) {
    const { view } = await context.views.loadForRun(ref);
    const open = view.interactions.find(({ id }) => id === interactionId);
    const now = context.clock.now();
    if (!open) throw await whyNotOpen(context, ref, interactionId);
    if (isOver(open, now)) throw closed(ref, interactionId, "expired");
    // An answer counts once: one that can't be understood must not be it.
    const problem = answerProblem(open.kind, given);
    if (problem) throw new BoughError("invalid_argument", problem, { data: { ...ref, interactionId } });
    const child = mirrorOf(open);
    if (child) return answerMirror(context, { ref, interactionId, child }, given, options);
    answer ??= await withStoredFiles(context, ref, given);
    const answered = interactionAnswered(context, { interactionId, answer, by: options.by });
    try {
      return (await context.views.append(ref, view, [answered], { expectedSeq: view.seq })).facts[0]!;
    } catch (error) {
      // Something else was written; perhaps the answer of another.
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}

/**
 * Answers the question behind a mirror first: its log decides which of several answers counts. Then the mirror records the
 * same answer, unless the run that opened it was faster. A mirror whose question needs no answer any more is closed.
 */
async function answerMirror(
  context: Context,
  mirror: { ref: BranchRef; interactionId: string; child: MirroredChild },
  answer: JsonObject,
  options: { by?: string },
): Promise<Fact> {
  const { ref, interactionId, child } = mirror;
  const { sessionId, branchId } = child;
  const behind = await answerInteraction(context, { sessionId, branchId }, child.interactionId, answer, options).catch(
    async (error) => {
      if (!isSettled(error)) throw error;
      await closeMirror(context, ref, interactionExpired(context, interactionId, "not needed"));
      throw closed(ref, interactionId, "answered");
    },
  );
  // As it was stored there: a file in it is a reference by now.
  const stored = behind.type === "interaction.answered" ? behind.answer : answer;
  const answered = interactionAnswered(context, { interactionId, answer: stored, by: options.by });
  return (await closeMirror(context, ref, answered)) ?? behind;
}

const settledCodes = ["interaction_closed", "interaction_not_found", "branch_not_found", "session_not_found"] as const;

/** Whether a question could not be answered because it needs no answer any more. */
function isSettled(error: unknown): boolean {
  return settledCodes.some((code) => BoughError.is(error, code));
}

/** Closes a mirror, unless it is closed already. Needs no run slot, as an answer needs none. */
export async function closeMirror(
  context: Context,
  ref: BranchRef,
  draft: Draft<"interaction.answered" | "interaction.expired">,
): Promise<Fact | undefined> {
  for (;;) {
    const { view } = await context.views.loadForRun(ref);
    if (!view.interactions.some(({ id }) => id === draft.interactionId)) return undefined;
    try {
      return (await context.views.append(ref, view, [draft], { expectedSeq: view.seq })).facts[0];
    } catch (error) {
      if (!BoughError.is(error, "sequence_conflict")) throw error;
    }
  }
}

/** All but a tool's output, which may hold bytes: it is checked once those are stored. */
function checkAnswer(answer: unknown): void {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw new BoughError("invalid_argument", "An answer must be an object.", { data: { what: "An answer" } });
  }
  const { output: _, ...rest } = answer as JsonObject;
  encodeJson(rest, "An answer", outputLimits);
}

/** The answer with the files of a tool's output stored. A client's answer becomes the result, so it may be as large as one. */
async function withStoredFiles(context: Context, ref: BranchRef, answer: JsonObject): Promise<JsonObject> {
  const output = await storeOutput({ context, ref, isChecked: true, origin: "client" }, answer.output);
  const stored = output === answer.output ? answer : { ...answer, output: output as Json };
  encodeJson(stored, "An answer", outputLimits);
  return stored;
}

/** Whether the interaction can no longer be answered. */
export function isOver({ expiresAt }: Interaction, now: number): boolean {
  return expiresAt !== undefined && now >= expiresAt;
}

/** Where a mirrored question was asked: the child's branch, and its question there. */
export interface MirroredChild extends BranchRef {
  readonly interactionId: string;
}

/** The question of a child that this one mirrors; undefined for a question of the branch's own. */
export function mirrorOf({ request }: Pick<Interaction, "request">): MirroredChild | undefined {
  const { child } = request as { child?: Partial<MirroredChild> };
  const isMirror = [child?.sessionId, child?.branchId, child?.interactionId].every((id) => typeof id === "string");
  return isMirror ? (child as MirroredChild) : undefined;
}

/** The questions of the open turn that can be answered. A mirror counts as long as the question behind it does. */
export async function openQuestions(
  context: Context,
  { open, interactions }: Pick<BranchView, "open" | "interactions">,
): Promise<Interaction[]> {
  const now = context.clock.now();
  const asked = interactions.filter((each) => open && each.turnId === open.id && !isOver(each, now));
  if (!asked.some(mirrorOf)) return asked;
  const waits = await Promise.all(asked.map((each) => isAnswerable(context, each)));
  return asked.filter((_, i) => waits[i]);
}

/** Whether the question behind a mirror, at whatever depth, still waits for its answer. */
async function isAnswerable(context: Context, interaction: Interaction): Promise<boolean> {
  const child = mirrorOf(interaction);
  if (!child) return true;
  const found = await context.views.loadForRun({ sessionId: child.sessionId, branchId: child.branchId }).then(
    ({ view }) => view.interactions.find(({ id }) => id === child.interactionId),
    (error: unknown) => {
      if (BoughError.is(error, "branch_not_found") || BoughError.is(error, "session_not_found")) return undefined;
      throw error;
    },
  );
  return found !== undefined && isAnswerable(context, found);
}

/** How many facts to search for a closed interaction, to report `interaction_closed` rather than `interaction_not_found`. */
const lookBack = 1000;

/** The refusal of an answer to what is not open: `interaction_closed`, or `interaction_not_found`. */
export async function whyNotOpen(context: Context, ref: BranchRef, interactionId: string): Promise<BoughError> {
  for await (const { facts } of context.journal.pieces(ref, { reverse: true, limit: lookBack })) {
    for (const fact of facts) {
      const isSettled = "interactionId" in fact && fact.interactionId === interactionId;
      if (isSettled) return closed(ref, interactionId, fact.type === "interaction.answered" ? "answered" : "expired");
      // Newest first: what settles a question comes before the question.
      if (fact.type === "interaction.opened" && fact.id === interactionId)
        return closed(ref, interactionId, "turn-closed");
    }
  }
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
