import { once } from "node:events";
import { type FileHandle, open } from "node:fs/promises";
import { defineCommand, misuse, stopIfAsked, storeArg } from "../command.ts";
import { exportSession } from "../copy/export.ts";
import { needSession } from "../copy/source.ts";
import { chooseStore, withStore } from "../store.ts";
import { count } from "../terminal.ts";

const bufferSize = 64 * 1024;

export const sessionsExport = defineCommand({
  args: {
    session: {
      type: "positional",
      valueHint: "SESSION",
      required: true,
      description: "the session's id; repeat for several",
    },
    output: {
      type: "string",
      alias: "o",
      valueHint: "FILE",
      description: "the output file (default: stdout); an existing file is not overwritten",
    },
    ...storeArg,
  },
  isVariadic: true,
  examples: ["sessions export user-123 > user-123.jsonl", "sessions export user-1 user-2 --output two.jsonl"],
  async run({ args, words, terminal, signal }) {
    const ids = [...new Set(words)];
    const pause = () => stopIfAsked(signal, "The export is incomplete; run the command again.");
    await withStore(chooseStore(args.store), {}, async (store) => {
      for (const id of ids) await needSession(store, id);
      const file = args.output === undefined ? undefined : await create(args.output);
      try {
        let buffer = "";
        const flush = async () => {
          if (file) await file.writeFile(buffer);
          else if (!process.stdout.write(buffer)) await once(process.stdout, "drain");
          buffer = "";
        };
        const write = async (line: string) => {
          pause();
          buffer += `${line}\n`;
          if (buffer.length >= bufferSize) await flush();
        };
        for (const id of ids) await exportSession(store, id, write);
        await flush();
        await file?.sync();
      } finally {
        await file?.close();
      }
    });
    terminal.note(`Exported ${count(ids.length, "session")}.`);
    return 0;
  },
});

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx");
  } catch (cause) {
    throw misuse(`"${path}" can't be written: ${(cause as Error).message}.`);
  }
}
