import { BoughError } from "../../base/errors.ts";
import { formOf } from "../../chat/questions.ts";
import { type OpenInteraction, openSessions, type Sessions } from "../../sessions/index.ts";
import { defineCommand, misuse, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";

export const interactionsAnswer = defineCommand({
  args: {
    id: {
      type: "positional",
      valueHint: "ID",
      required: true,
      description: "the question's id, as listed by `interactions ls`",
    },
    answer: {
      type: "positional",
      valueHint: "ANSWER",
      required: true,
      description: "the answer, as in a chat: y, n, text or JSON",
    },
    by: { type: "string", valueHint: "NAME", description: "the user who answers, stored with the answer" },
    ...storeArg,
  },
  isVariadic: true,
  examples: ["interactions answer 01J… y", `interactions answer 01J… '{"approved":false,"reason":"Not today."}'`],
  async run({ args, words, terminal }) {
    const line = words.slice(1).join(" ");
    await withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const question = await find(sessions, args.id);
      const reading = formOf(question).read(line);
      if ("problem" in reading) throw misuse(reading.problem);
      await sessions.answer(question, question.id, reading.answer, args.by === undefined ? {} : { by: args.by });
    });
    terminal.note("Answered. A process that runs its agent continues the turn.");
    return 0;
  },
});

async function find(sessions: Sessions, id: string): Promise<OpenInteraction> {
  let cursor: string | undefined;
  do {
    const page = await sessions.listInteractions({ limit: 500, ...(cursor !== undefined && { cursor }) });
    const found = page.interactions.find((each) => each.id === id);
    if (found) return found;
    cursor = page.cursor;
  } while (cursor !== undefined);
  throw new BoughError("interaction_not_found", `There is no open question "${id}".`, {
    data: { interactionId: id },
  });
}
