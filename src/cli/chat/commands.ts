// The chat's slash commands. A new command is an entry in the table.

import { visible } from "../../chat/text.ts";
import { textOf } from "../../events/index.ts";
import { planEdit, planRegeneration, type Revision } from "../../wire/index.ts";
import { misuse } from "../command.ts";
import { count } from "../terminal.ts";
import { queue } from "./queue.ts";
import { placeOf, type Talk } from "./talk.ts";
import { tasks } from "./tasks.ts";

interface SlashCommand {
  readonly usage: string;
  readonly summary: string;
  /** How many arguments may follow; with `"rest"`, whatever follows is one. */
  readonly words: number | "rest";
  run(chat: Talk, words: readonly string[]): Promise<void>;
}

/** How many messages `/edit` looks at. */
const mostLooked = 1000;

const commands: Readonly<Record<string, SlashCommand>> = {
  help: {
    usage: "/help",
    summary: "show this list; start a line with // to send text that begins with /",
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
    summary: "fork here, or after message N, and switch to the new branch",
    words: 2,
    run: fork,
  },
  branches: {
    usage: "/branches",
    summary: "show the branch tree",
    words: 0,
    async run(chat) {
      const { sessionId, branchId } = placeOf(chat);
      chat.screen.tell({ type: "branches", branches: await chat.conversation.branches(sessionId), current: branchId });
    },
  },
  switch: { usage: "/switch BRANCH", summary: "switch to another branch", words: 1, run: switchTo },
  undo: { usage: "/undo", summary: "revert the last turn; the log keeps it", words: 0, run: undo },
  redo: {
    usage: "/redo [NAME]",
    summary: "bring what was undone last back, on a new branch, and switch to it",
    words: 1,
    run: redo,
  },
  again: {
    usage: "/again [NAME]",
    summary: "have your last message answered again, on a new branch",
    words: 1,
    run: again,
  },
  edit: {
    usage: "/edit N TEXT",
    summary: "say TEXT in place of your message N, on a new branch",
    words: "rest",
    run: edit,
  },
  compact: {
    usage: "/compact [N]",
    summary: "show older turns to the model as something shorter; the last N turns stay",
    words: 1,
    run: compact,
  },
  uncompact: { usage: "/uncompact", summary: "take the newest compaction or clearing back", words: 0, run: uncompact },
  attach: {
    usage: "/attach [FILE]",
    summary: "send a file with your next message, or list what will be sent",
    words: "rest",
    run: attach,
  },
  detach: {
    usage: "/detach",
    summary: "send no files with your next message",
    words: 0,
    async run(chat) {
      chat.attachments.clear();
      chat.screen.tell({ type: "attached", files: [] });
    },
  },
  queue: {
    usage: "/queue [edit N TEXT | rm N]",
    summary: "list messages that wait for their turn; change or withdraw one",
    words: "rest",
    run: (chat, [typed = ""]) => queue(chat, typed),
  },
  tasks: {
    usage: "/tasks [rm N]",
    summary: "list background tasks; cancel one",
    words: "rest",
    run: (chat, [typed = ""]) => tasks(chat, typed),
  },
  history: {
    usage: "/history [N]",
    summary: "show the last N messages (default 10), with their numbers",
    words: 1,
    run: history,
  },
  context: {
    usage: "/context",
    summary: "show how full the model's context is, and when it is compacted",
    words: 0,
    async run(chat) {
      chat.screen.tell({ type: "context", usage: await chat.conversation.contextUsage(placeOf(chat)) });
    },
  },
  sessions: {
    usage: "/sessions [ID]",
    summary: "list the newest sessions, or switch to one",
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
    summary: "start a new session",
    words: 0,
    async run(chat) {
      await chat.goTo(undefined);
      chat.screen.note("Your next message starts a new session.");
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
  if (!command)
    throw misuse(
      `Unknown command: /${visible(name)}. /help lists the commands; start a line with // to send text that begins with /.`,
    );
  if (command.words === "rest") {
    const rest = line.slice(name.length + 1).trim();
    return command.run(chat, rest === "" ? [] : [rest]);
  }
  if (words.length > command.words) throw misuse(`Too many arguments. Usage: ${command.usage}`);
  await command.run(chat, words);
}

async function attach({ attachments, screen }: Talk, [typed]: readonly string[]): Promise<void> {
  if (typed !== undefined) await attachments.add(typed);
  screen.tell({ type: "attached", files: attachments.files });
}

async function fork(chat: Talk, words: readonly string[]): Promise<void> {
  const place = placeOf(chat);
  const { conversation } = chat;
  const [first] = words;
  const isNumber = first !== undefined && /^\d{1,9}$/.test(first);
  const name = isNumber ? words[1] : first;
  if (!isNumber && words.length > 1) throw misuse("Usage: /fork [N] [NAME], where N is the number of a message.");
  const newBranchId = name ?? (await freeName(chat, place.sessionId, "fork"));
  await conversation.fork(place, { newBranchId, ...(isNumber && { keep: Number(first) }) });
  await chat.goTo({ ...place, branchId: newBranchId }, { recent: 2 });
}

async function switchTo(chat: Talk, [branchId]: readonly string[]): Promise<void> {
  const place = placeOf(chat);
  const ids = (await chat.conversation.branches(place.sessionId)).map(({ id }) => id);
  if (branchId === undefined || !ids.includes(branchId)) {
    throw misuse(`Name one of this session's branches: ${ids.map(visible).join(", ")}.`);
  }
  await chat.goTo({ ...place, branchId });
}

async function undo(chat: Talk): Promise<void> {
  const { messages } = await chat.conversation.branch(placeOf(chat)).undo();
  chat.screen.tell({ type: "undone", messages: messages.length, said: textOf(messages[0]!) });
}

async function redo(chat: Talk, [name]: readonly string[]): Promise<void> {
  const place = placeOf(chat);
  const newBranchId = name ?? (await freeName(chat, place.sessionId, "redo"));
  await chat.conversation.branch(place).redo({ newBranchId });
  await chat.goTo({ ...place, branchId: newBranchId }, { recent: 2 });
}

async function again(chat: Talk, [name]: readonly string[]): Promise<void> {
  const place = placeOf(chat);
  const branch = chat.conversation.branch(place);
  await revise(chat, await planRegeneration(branch), name ?? (await freeName(chat, place.sessionId, "again")));
}

async function edit(chat: Talk, [typed = ""]: readonly string[]): Promise<void> {
  const place = placeOf(chat);
  const [, number, text] = /^(\d{1,9})\s+(.+)$/s.exec(typed) ?? [];
  if (number === undefined || text === undefined) {
    throw misuse("Usage: /edit N TEXT, where N is the number of your message; /history shows the numbers.");
  }
  const { messages, before } = await chat.conversation.look(place, mostLooked);
  const message = messages[Number(number) - 1 - before];
  if (!message) throw misuse(`There is no message ${number} among the last ${mostLooked}.`);
  const plan = await planEdit(chat.conversation.branch(place), message.id, text);
  await revise(chat, plan, await freeName(chat, place.sessionId, "edit"));
}

/** Forks, switches to the fork, and runs the turn there. */
async function revise(chat: Talk, { point, input }: Revision, newBranchId: string): Promise<void> {
  const place = placeOf(chat);
  await chat.conversation.branch(place).fork({ ...point, newBranchId });
  await chat.goTo({ ...place, branchId: newBranchId }, { recent: 1 });
  await chat.run(input);
}

/** The first of "fork-1", "fork-2" … that no branch has. */
async function freeName({ conversation }: Talk, sessionId: string, stem: string): Promise<string> {
  const taken = new Set((await conversation.branches(sessionId)).map(({ id }) => id));
  let n = 1;
  while (taken.has(`${stem}-${n}`)) n++;
  return `${stem}-${n}`;
}

async function compact(chat: Talk, [turns]: readonly string[]): Promise<void> {
  if (turns !== undefined && !/^\d{1,4}$/.test(turns))
    throw misuse("Usage: /compact [N], where N is a number of turns.");
  const { conversation, screen } = chat;
  const made = await conversation.compact(placeOf(chat), turns === undefined ? undefined : Number(turns));
  screen.note(
    `Compacted ${count(made.messages, "message")}. The log keeps them, and /uncompact shows them to the model again.`,
  );
}

async function uncompact(chat: Talk): Promise<void> {
  const { messages, cleared } = await chat.conversation.uncompact(placeOf(chat));
  const what =
    cleared === undefined ? `compaction of ${count(messages, "message")}` : `clearing of ${count(cleared, "output")}`;
  chat.screen.note(`Took back the ${what}.`);
}

async function history(chat: Talk, [many = "10"]: readonly string[]): Promise<void> {
  if (!/^[1-9]\d{0,3}$/.test(many))
    throw misuse("Usage: /history [N], where N is a number of messages from 1 to 9999.");
  const { messages, before } = await chat.conversation.look(placeOf(chat), Number(many));
  chat.screen.tell({ type: "history", messages, before });
}
