import { BoughError } from "../../base/errors.ts";
import { type OpenInteraction, openSessions, type Sessions } from "../../sessions/index.ts";
import { formOf } from "../chat/questions.ts";
import { defineCommand, misuse, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";

export const interactionsAnswer = defineCommand({
  args: {
    id: { type: "positional", valueHint: "ID", required: true, description: "as `interactions ls` shows it" },
    answer: {
      type: "positional",
      valueHint: "ANSWER",
      required: true,
      description: "as in a chat: y, n, your words; or JSON",
    },
    by: { type: "string", valueHint: "NAME", description: "who answers" },
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
    terminal.note("Answered. Whoever runs its agent goes on with the turn.");
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
  throw new BoughError("interaction_not_found", `No question "${id}" waits for an answer.`, {
    data: { interactionId: id },
  });
}
