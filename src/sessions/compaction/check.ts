// What a compaction lost: the same questions are asked with the compaction and without it, and the answers are compared.
//   Check-1. Nothing is written: the branch without the compaction is a view, not a fork, so a crash leaves nothing behind.
//   Check-2. Both sides are the request of the branch's next call with one more text at its end, so they ride the provider's cache.

import { BoughError } from "../../base/errors.ts";
import { anything, checkOptions, optionTable, text } from "../../base/options.ts";
import type { Fact } from "../../events/index.ts";
import { addUsage, type Usage } from "../../models/index.ts";
import { foldAhead } from "../../projection/header.ts";
import type { BranchView } from "../../projection/index.ts";
import { copyView } from "../../projection/view.ts";
import type { CheckedAnswer, CompactionCheck, CompactionCheckRequest } from "../../wire/index.ts";
import { resolveBranch } from "../branches.ts";
import type { Context, Scope } from "../context.ts";
import type { Compactor } from "./compact.ts";
import type { StrategyModel } from "./port.ts";
import { draftRestored } from "./uncompact.ts";

/** What to ask about a compaction, in this process. */
export interface CheckCompactionOptions extends CompactionCheckRequest {
  /** Scores an answer from 0 to 1 (default: the share of the original answer's words that the other one has). */
  readonly judge?: (answers: Omit<CheckedAnswer, "score">) => number | Promise<number>;
  /** Stops the check. */
  readonly signal?: AbortSignal;
}

const mostQuestions = 50;
const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= mostQuestions;
const optionKeys = optionTable<CheckCompactionOptions>({
  compactionId: text,
  questions: {
    fits: (value) => Array.isArray(value) && isCount(value.length) && value.every((each) => typeof each === "string"),
    wanted: `a list of 1 to ${mostQuestions} texts`,
  },
  count: { fits: isCount, wanted: `an integer from 1 to ${mostQuestions}` },
  ...{ judge: anything, signal: anything },
});

export async function checkCompaction(
  context: Context,
  scope: Scope,
  options: CheckCompactionOptions,
  { asker }: Compactor,
): Promise<CompactionCheck> {
  checkOptions("The options of checkCompaction", options, optionKeys);
  if (!asker) {
    throw new BoughError("invalid_argument", "Checking a compaction asks a model: do it through an agent.");
  }
  const ref = await resolveBranch(context, scope);
  // The view goes on while the model is asked.
  const view = copyView((await context.views.load(ref)).view);
  const { draft, taken } = await draftRestored(context, ref, view, options.compactionId);
  const without = foldAhead(view, [{ ...draft, seq: view.seq + 1 } as Fact]).after;
  const { signal = new AbortController().signal } = options;
  const sideOf = async (of: BranchView) => new Side((await asker(ref, of))(signal));
  const [compacted, original] = [await sideOf(view), await sideOf(without)];
  const questions = options.questions ?? (await original.propose(taken, options.count ?? defaultCount));
  const answers: CheckedAnswer[] = [];
  for (const question of questions)
    answers.push(await compare(question, compacted, original, options.judge ?? overlap));
  const scores = answers.flatMap(({ score }) => score ?? []);
  return {
    compactionId: taken.id,
    answers,
    ...(scores.length > 0 && { score: scores.reduce((sum, score) => sum + score, 0) / scores.length }),
    usage: { ...addUsage(compacted.usage, original.usage) },
  };
}

const defaultCount = 5;

async function compare(
  question: string,
  compacted: Side,
  original: Side,
  judge: NonNullable<CheckCompactionOptions["judge"]>,
): Promise<CheckedAnswer> {
  const [short, long] = await Promise.all([compacted.answer(question), original.answer(question)]);
  const answers = { question, compacted: short ?? "", original: long ?? "" };
  if (short === undefined || long === undefined) return answers;
  const score = await judge(answers);
  if (!(score >= 0 && score <= 1)) {
    throw new BoughError("invalid_argument", `judge must give a number from 0 to 1, not ${score}.`);
  }
  return { ...answers, score };
}

/** The branch with the compaction, or without it, as a model can be asked about it. */
class Side {
  usage: Usage = {};
  readonly #model: StrategyModel;

  constructor(model: StrategyModel) {
    this.#model = model;
  }

  /** Undefined when the conversation is too long for the model. */
  async answer(question: string): Promise<string | undefined> {
    try {
      return await this.#ask(`${answerPrompt}\n\n${question}`);
    } catch (error) {
      if (BoughError.is(error, "context_overflow")) return undefined;
      throw error;
    }
  }

  async propose({ first, last }: { first: string; last: string }, count: number): Promise<string[]> {
    const said = await this.#ask(proposalPrompt(count));
    const questions = said
      .split("\n")
      .map(bareLine)
      .filter((line) => line !== "")
      .slice(0, count);
    if (questions.length > 0) return questions;
    throw new BoughError("model_failed", "The model proposed no questions.", { data: { first, last } });
  }

  async #ask(words: string): Promise<string> {
    const request = this.#model.request();
    const reply = await this.#model.ask({ ...request, reminders: [words] });
    this.usage = addUsage(this.usage, reply.usage);
    return reply.text.trim();
  }
}

const answerPrompt =
  "Answer the following question about this conversation in one or two sentences. Use only what the conversation above " +
  "says; if it does not say, answer that it does not. Call no tools.";

function proposalPrompt(count: number): string {
  return (
    `Write ${count} questions that test whether a summary of the older part of this conversation is complete. Each asks for ` +
    "one fact that the conversation states and that later work may need: a decision and its reason, an exact name, path, " +
    "number or error, something that the user asked for or forbade. One question a line, nothing else. Call no tools."
  );
}

/** Without the number or dash that models put before a line. */
function bareLine(line: string): string {
  return line.replace(/^\s*(?:\d+[.)]|[-*•])?\s*/, "").trim();
}

/** The share of what the original answer says that the other one has; words of the question tell nothing. */
function overlap({ question, compacted, original }: Omit<CheckedAnswer, "score">): number {
  const asked = new Set(wordsOf(question));
  const said = new Set(wordsOf(compacted));
  const wanted = [...new Set(wordsOf(original))].filter((word) => !asked.has(word) && weightOf(word) > 0);
  const total = wanted.reduce((sum, word) => sum + weightOf(word), 0);
  if (total === 0) return wordsOf(original).join(" ") === wordsOf(compacted).join(" ") ? 1 : 0;
  return wanted.filter((word) => said.has(word)).reduce((sum, word) => sum + weightOf(word), 0) / total;
}

function wordsOf(said: string): string[] {
  return said.toLowerCase().match(/[\p{L}\p{N}]+(?:[._/:-][\p{L}\p{N}]+)*/gu) ?? [];
}

/** Numbers and names tell most, short words nothing. */
function weightOf(word: string): number {
  if (/\p{N}/u.test(word)) return 3;
  return word.length > 3 ? 1 : 0;
}
