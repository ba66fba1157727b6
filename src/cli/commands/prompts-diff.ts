import { visible } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import type { DifferingPart, PromptDiff } from "../../wire/index.ts";
import { branchArgs, defineCommand, jsonArg, misuse, scopeOf, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import type { Terminal } from "../terminal.ts";
import { findReplies, sourceText } from "./prompts-show.ts";

export const promptsDiff = defineCommand({
  args: {
    ...branchArgs,
    from: { type: "string", valueHint: "ID", description: "the earlier reply (default: the one before the later)" },
    to: { type: "string", valueHint: "ID", description: "the later reply (default: the newest)" },
    "to-branch": { type: "string", valueHint: "BRANCH", description: "the later reply's branch (default: the same)" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["prompts diff user-123", "prompts diff user-123 main --from 01K5 --to 01K6 --json"],
  async run({ args, terminal }) {
    return withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const scope = scopeOf(args);
      const branchId = args["to-branch"];
      const toScope = branchId === undefined ? scope : { ...scope, branchId };
      const replies = await findReplies(sessions, toScope);
      const to = args.to ?? replies.at(-1);
      const from = args.from ?? replies[replies.indexOf(to ?? "") - 1];
      if (from === undefined || to === undefined)
        throw misuse("There are no two replies to compare: use --from and --to.");
      const diff = await sessions.diffPrompts(scope, from, to, { toScope });
      if (args.json) terminal.print(JSON.stringify({ from, to, diff }));
      else printDiff(terminal, diff);
      return 0;
    });
  },
});

function printDiff(terminal: Terminal, { isPrefix, first, bytes, share, settings, isVerified }: PromptDiff): void {
  const percent = (100 * share).toFixed(1);
  terminal.print(
    `${bytes.shared} of ${bytes.from} bytes begin the later prompt (${percent} %), which has ${bytes.to}.`,
  );
  if (isPrefix) terminal.print("The provider's cache holds.");
  else terminal.print(`The cache is lost from there on: ${first?.change} ${visible(first?.compactionId ?? "changed")}`);
  for (const side of ["from", "to"] as const) if (first?.[side]) printSide(terminal, side, first[side]);
  if (settings.length > 0) terminal.print(`Other settings: ${visible(settings.join(", "))}`);
  if (!isVerified) terminal.print("One of the prompts is not verified: see bough prompts show.");
}

function printSide(terminal: Terminal, side: "from" | "to", { source, excerpt }: DifferingPart): void {
  const name = source.type === "tool" ? `tool ${source.name}` : sourceText(source);
  terminal.print(`${side === "from" ? "earlier" : "later  "}  ${visible(name)}  ${visible(excerpt)}`);
}
