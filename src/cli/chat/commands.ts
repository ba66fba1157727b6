// What can be said to the chat itself. A new command is a line of the table.

import type { BranchRef } from "../../log/store.ts";
import { misuse } from "../command.ts";
import { visible } from "../terminal.ts";
import type { Conversation } from "./conversation.ts";
import type { Screen } from "./screen.ts";

export interface GoToOptions {
  /** How many messages to show. */
  readonly recent?: number;
  /** Whether a command said to go there; the place a chat begins at is told beside its answers. */
  readonly isAsked?: boolean;
}

/** What commands use of a chat. */
export interface Talk {
  readonly conversation: Conversation;
  readonly screen: Screen;
  /** Where the chat is; nothing before anything is said. */
  readonly place: BranchRef | undefined;
  /** Goes to a branch, and on with a turn that was left open there; without one, to a session to come. */
  goTo(place: BranchRef | undefined, options?: GoToOptions): Promise<void>;
  leave(): void;
}

interface SlashCommand {
  readonly usage: string;
  readonly summary: string;
  /** How many words may follow. */
  readonly words: number;
  run(chat: Talk, words: readonly string[]): Promise<void>;
}

/** As many messages as a turn may have for an undo to find its beginning. */
const longestTurn = 1000;

const commands: Readonly<Record<string, SlashCommand>> = {
  help: {
    usage: "/help",
    summary: "what can be said; a line that begins with // is sent with one /",
    words: 0,
    async run(chat) {
      chat.screen.tell({
        type: "help",
        commands: Object.values(commands).map(({ usage, summary }) => ({ usage, summary })),
      });
    },
  },
  fork: {
    usage: "/fork [N] [NAME]",
    summary: "a new branch from here, or after message N",
    words: 2,
    run: fork,
  },
  branches: {
    usage: "/branches",
    summary: "the session's branches as a tree",
    words: 0,
    async run(chat) {
      const { sessionId, branchId } = placeOf(chat);
      chat.screen.tell({ type: "branches", branches: await chat.conversation.branches(sessionId), current: branchId });
    },
  },
  switch: { usage: "/switch BRANCH", summary: "go to another branch", words: 1, run: switchTo },
  undo: { usage: "/undo", summary: "take the last turn back; the log keeps it", words: 0, run: undo },
  history: { usage: "/history [N]", summary: "the last N messages (10), with their numbers", words: 1, run: history },
  sessions: {
    usage: "/sessions [ID]",
    summary: "the newest sessions, or go to one",
    words: 1,
    async run(chat, [id]) {
      const { conversation, screen } = chat;
      if (id === undefined) {
        screen.tell({ type: "sessions", sessions: await conversation.sessions(20) });
        return;
      }
      const [first] = await conversation.branches(id);
      await chat.goTo({ sessionId: id, branchId: first!.id });
    },
  },
  new: {
    usage: "/new",
    summary: "a new session",
    words: 0,
    async run(chat) {
      await chat.goTo(undefined);
      chat.screen.note("A new session begins with what you say next.");
    },
  },
  quit: {
    usage: "/quit",
    summary: "leave (also Ctrl-D)",
    words: 0,
    async run(chat) {
      chat.leave();
    },
  },
};

export async function runSlash(chat: Talk, line: string): Promise<void> {
  const [name = "", ...words] = line.slice(1).split(/\s+/);
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command) throw misuse(`There is no command /${visible(name)}; /help lists them, and // sends a line with a /.`);
  if (words.length > command.words) throw misuse(`It is ${command.usage}.`);
  await command.run(chat, words);
}

function placeOf({ place }: Talk): BranchRef {
  if (!place) throw misuse("Nothing has been said yet.");
  return place;
}

async function fork(chat: Talk, words: readonly string[]): Promise<void> {
  const place = placeOf(chat);
  const { conversation } = chat;
  const [first] = words;
  const isNumber = first !== undefined && /^\d{1,9}$/.test(first);
  const name = isNumber ? words[1] : first;
  if (!isNumber && words.length > 1) throw misuse("It is /fork [N] [NAME].");
  const taken = new Set((await conversation.branches(place.sessionId)).map(({ id }) => id));
  let n = 1;
  while (taken.has(`fork-${n}`)) n++;
  const newBranchId = name ?? `fork-${n}`;
  await conversation.fork(place, { newBranchId, ...(isNumber && { keep: Number(first) }) });
  await chat.goTo({ ...place, branchId: newBranchId }, { recent: 2 });
}

async function switchTo(chat: Talk, [branchId]: readonly string[]): Promise<void> {
  const place = placeOf(chat);
  const ids = (await chat.conversation.branches(place.sessionId)).map(({ id }) => id);
  if (branchId === undefined || !ids.includes(branchId)) {
    throw misuse(`Which branch? There are ${ids.map(visible).join(", ")}.`);
  }
  await chat.goTo({ ...place, branchId });
}

async function undo(chat: Talk): Promise<void> {
  const place = placeOf(chat);
  const { messages, before } = await chat.conversation.look(place, longestTurn);
  const last = messages.at(-1);
  if (!last) throw misuse("There is nothing to undo.");
  const start = messages.findIndex(({ turnId }) => turnId === last.turnId);
  if (start === 0 && before > 0) throw misuse("The last turn is too long to be undone here.");
  await chat.conversation.revert(place, messages[start - 1]?.id);
  const { content } = messages[start]!;
  const said =
    typeof content === "string" ? content : content.map((part) => ("text" in part ? part.text : "")).join("");
  chat.screen.tell({ type: "undone", messages: messages.length - start, said });
}

async function history(chat: Talk, [many = "10"]: readonly string[]): Promise<void> {
  if (!/^[1-9]\d{0,3}$/.test(many)) throw misuse("It is /history [N], N being a number of messages.");
  const { messages, before } = await chat.conversation.look(placeOf(chat), Number(many));
  chat.screen.tell({ type: "history", messages, before });
}
