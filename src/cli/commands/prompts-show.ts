import { visible } from "../../chat/text.ts";
import { textOf } from "../../events/index.ts";
import { openSessions, type Scope, type Sessions } from "../../sessions/index.ts";
import type { PromptSource, SentMessage, SentPrompt } from "../../wire/index.ts";
import { branchArgs, defineCommand, jsonArg, misuse, scopeOf, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { printTable, type Terminal } from "../terminal.ts";

export const promptsShow = defineCommand({
  args: {
    ...branchArgs,
    message: { type: "string", valueHint: "ID", description: "the reply (default: the newest)" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["prompts show user-123", "prompts show user-123 main --message 01K5 --json"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const scope = scopeOf(args);
      const messageId = args.message ?? (await findReplies(sessions, scope)).at(-1);
      if (messageId === undefined) throw misuse("The branch has no reply.");
      const prompt = await sessions.promptOf(scope, messageId);
      if (args.json) terminal.print(JSON.stringify({ prompt }));
      else printPrompt(terminal, prompt);
      return prompt.isVerified ? 0 : 1;
    });
  },
});

/** The ids of a branch's replies, oldest first. */
export async function findReplies(sessions: Sessions, scope: Scope): Promise<string[]> {
  const { messages } = await sessions.loadBranch(scope);
  return messages.filter(({ role }) => role === "assistant").map(({ id }) => id);
}

function printPrompt(terminal: Terminal, prompt: SentPrompt): void {
  const { messageId, upTo, model, sha, isVerified, missing, withheld, tools, messages } = prompt;
  terminal.print(
    `Reply ${visible(messageId)} of ${visible(`${model.provider}/${model.modelId}`)}, on the log up to ${upTo}`,
  );
  terminal.print(isVerified ? `Verified: ${sha}` : `Not verified: ${whyNot(missing)}`);
  if (withheld.length > 0) terminal.print(`Not kept: ${visible(withheld.join(", "))}`);
  if (tools.length > 0) terminal.print(`Tools: ${visible(tools.map(({ name }) => name).join(", "))}`);
  printTable(terminal, ["ROLE", "SOURCE", "TEXT"], messages.map(rowOf));
}

function whyNot(missing: SentPrompt["missing"]): string {
  return missing.length > 0 ? `${missing.join(", ")} could not be kept.` : "the log gives another prompt.";
}

const shownText = 60;

function rowOf({ role, content, source }: SentMessage): string[] {
  const said = textOf({ content }) || (typeof content === "string" ? "" : content.map(({ type }) => type).join(", "));
  const line = said.replace(/\s+/g, " ");
  return [role, sourceText(source), line.length > shownText ? `${line.slice(0, shownText)}…` : line];
}

/** Where a part of a prompt comes from, in a few words. */
export function sourceText(source: PromptSource): string {
  switch (source.type) {
    case "message": {
      const notes = [
        source.isPinned && "pinned",
        source.keptBy !== undefined && `kept by ${source.keptBy}`,
        source.clearedBy && `cleared by ${source.clearedBy.join(", ")}`,
      ].filter(Boolean);
      return notes.length > 0 ? `message ${source.messageId} (${notes.join("; ")})` : `message ${source.messageId}`;
    }
    case "compaction":
      return `compaction ${source.compactionId}`;
    case "hook":
      return source.messageId === undefined ? "hook" : `hook, for message ${source.messageId}`;
    default:
      return source.type;
  }
}
