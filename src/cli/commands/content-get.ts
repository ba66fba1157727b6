import { createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { basename } from "node:path";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { sizeText } from "../../base/size-text.ts";
import { visible } from "../../chat/text.ts";
import type { ContentBody, ContentHandle } from "../../wire/index.ts";
import { Bar } from "../bar.ts";
import { type Call, defineCommand, misuse, stopIfAsked } from "../command.ts";
import { contentArgs, contentOptions, fileWord, findFile, withContent } from "../content.ts";

const getArgs = {
  ...contentArgs,
  ...fileWord,
  output: {
    type: "string",
    alias: "o",
    valueHint: "PATH",
    description: "where to write it (default: its name, here; - for stdout); an existing file is not overwritten",
  },
  ...contentOptions,
} as const;

type GetCall = Call<typeof getArgs>;

export const contentGet = defineCommand({
  args: getArgs,
  examples: [
    "content get user-123 tree.png",
    "content get user-123 3f2a9c -o copy.png",
    "content get user-123 notes.txt -o - --url http://127.0.0.1:4600",
  ],
  async run(call) {
    const { args, terminal } = call;
    const path = args.output;
    await withContent(args, async (handle) => {
      const file = findFile(await handle.list(), args.file);
      if (path === "-") return download(call, handle, file, process.stdout);
      const target = path ?? ownName(file);
      if (await stat(target).catch(() => undefined)) throw misuse(`"${target}" exists already. Pass --output PATH.`);
      await downloadTo(call, handle, file, target);
      terminal.print(`${sizeText(file.size)}  ${visible(target)}`);
    });
    return 0;
  },
});

/** A name that stays in this directory, whatever the one who stored the file called it. */
function ownName({ id, name = "" }: ContentBody): string {
  const last = basename(name.replaceAll("\\", "/"));
  return last === "" || last.startsWith(".") ? id : last;
}

/** The file appears when it is whole. */
async function downloadTo(call: GetCall, handle: ContentHandle, file: ContentBody, target: string): Promise<void> {
  const part = `${target}.part`;
  try {
    await download(call, handle, file, createWriteStream(part));
    await rename(part, target);
  } catch (error) {
    await rm(part, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    throw code?.startsWith("E") ? misuse(`"${target}" can't be written: ${message}.`) : error;
  }
}

async function download(call: GetCall, handle: ContentHandle, file: ContentBody, to: Writable): Promise<void> {
  const { terminal, signal } = call;
  const bar = new Bar(terminal);
  const shown = visible(file.name ?? file.id.slice(0, 12));
  let done = 0;
  async function* counted(pieces: AsyncIterable<Uint8Array>) {
    for await (const piece of pieces) {
      yield piece;
      done += piece.length;
      // Beside the bytes themselves, a bar would be in the way.
      if (to !== process.stdout) bar.draw(`${sizeText(done)} of ${sizeText(file.size)}  ${shown}`, done / file.size);
    }
  }
  try {
    const stream = await handle.stream(file.id, { signal });
    await pipeline(counted(stream as unknown as AsyncIterable<Uint8Array>), to, { end: to !== process.stdout });
  } catch (error) {
    stopIfAsked(signal, `"${shown}" was not read to its end.`);
    throw error;
  } finally {
    bar.end();
  }
}
