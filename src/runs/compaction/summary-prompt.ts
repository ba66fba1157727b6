// What a model is asked for when it summarises a conversation, and what is shown in place of the conversation.

import { type Message, type NewMessage, textOf } from "../../events/index.ts";
import { listFiles, listTitle } from "./files.ts";

/** Asks for a summary that a reader who sees nothing else can go on with. */
const questions = `Write a summary of this conversation for the assistant who will go on with it. That assistant will see your summary
instead of the messages, so whatever you leave out is lost. Do not answer the user, do not call tools, and do not go on with the work.

Cover, under a heading each, what there is:
- Goal: what the user wants and by what they will judge it, in the user's own words where the wording matters.
- Limits: what the user forbade, refused or insisted on.
- Decisions: what was decided, and why; what was tried and given up.
- Facts: exact names, ids, paths, numbers, commands, quotations and error texts that may be needed again. Copy them character by character.
- State: what is done, what is in progress, what is blocked and by what.
- Next: the one next step.

Be brief in prose and complete in facts.`;

const carriedOver = `The conversation begins with an earlier summary. Carry over everything in it that is still true; where it and later messages
disagree, the later ones win.`;

/** What the strategy's request is about. */
export interface SummaryRequest {
  /** The range, as a model sees it. */
  readonly messages: readonly Message[];
  /** The user's own wording of what to write; default the questions above. */
  readonly prompt: string | undefined;
  /** What the caller wants the summary to heed. */
  readonly instructions: string | undefined;
  /** How many messages after the range the request shows, too. */
  readonly after: number;
}

/** The text that asks for the summary. */
export function summaryPrompt({ messages, prompt = questions, instructions, after }: SummaryRequest): string {
  const texts = [prompt];
  if (messages.some((message) => readHead(message))) texts.push(carriedOver);
  if (after > 0) {
    texts.push(
      `The last ${after} messages before this one will still be seen as they are: summarise what came before them.`,
    );
  }
  if (instructions !== undefined) texts.push(`Heed this above all: ${instructions}`);
  return texts.join("\n\n");
}

/** The message that is shown in place of the range. */
export function summaryMessage(text: string, messages: readonly Message[]): NewMessage {
  const files = listFiles(messages);
  const list = files.length > 0 ? `${listTitle}\n${files.map((file) => `- ${file}`).join("\n")}` : "";
  return { role: "user", content: [headOf(messages), list, text].filter((each) => each !== "").join("\n\n") };
}

const headPattern = /^Earlier conversation, summarised; (\d+) messages from (\S+) to (\S+)\.\n/;

/** What the head of an earlier summary says; undefined for any other message. */
function readHead(message: Message): { count: number; from: string } | undefined {
  if (message.role !== "user") return undefined;
  const [, count, from] = headPattern.exec(textOf(message)) ?? [];
  return count !== undefined && from !== undefined ? { count: Number(count), from } : undefined;
}

/** An earlier summary in the range stands for the messages that it says it does. */
function headOf(messages: readonly Message[]): string {
  const heads = messages.map(readHead);
  const count = heads.reduce((sum, head) => sum + (head?.count ?? 1), 0);
  const from = heads[0]?.from ?? timeOf(messages[0]);
  return `Earlier conversation, summarised; ${count} messages from ${from} to ${timeOf(messages.at(-1))}.`;
}

function timeOf(message: Message | undefined): string {
  return new Date(message?.createdAt ?? 0).toISOString();
}
