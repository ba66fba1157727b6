import { ask } from "../ask.ts";
import { defineCommand, jsonArg, yesArg } from "../command.ts";
import { contentArgs, contentOptions, fileWord, findFile, withContent } from "../content.ts";
import { count, toJson } from "../terminal.ts";

export const contentRm = defineCommand({
  args: {
    ...contentArgs,
    file: { ...fileWord.file, description: `${fileWord.file.description}; repeat for several` },
    ...yesArg,
    ...contentOptions,
    ...jsonArg,
  },
  isVariadic: true,
  examples: ["content rm user-123 tree.png", "content rm user-123 a.pdf b.pdf --yes"],
  async run({ args, words, terminal }) {
    return withContent(args, async (handle) => {
      const all = await handle.list();
      // If any file is missing, nothing is removed.
      const ids = [...new Set(words.slice(1).map((word) => findFile(all, word).id))];
      const question = `Remove ${count(ids.length, "file")} from the branch? Messages that refer to them stay.`;
      if (!(await ask(question, { terminal, isAgreed: args.yes }))) return 1;
      for (const id of ids) await handle.delete(id);
      if (args.json) terminal.print(toJson({ removed: ids }));
      else terminal.print(`Removed ${count(ids.length, "file")}.`);
      return 0;
    });
  },
});
