import { createReadStream } from "node:fs";
import { basename } from "node:path";
import { sizeText } from "../../base/size-text.ts";
import { visible } from "../../chat/text.ts";
import type { ContentBody, ContentHandle } from "../../wire/index.ts";
import { Bar } from "../bar.ts";
import { type Call, defineCommand, jsonArg, misuse, stopIfAsked } from "../command.ts";
import { contentArgs, contentOptions, withContent } from "../content.ts";
import { checkFile } from "../files.ts";
import { toJson } from "../terminal.ts";

const putArgs = {
  ...contentArgs,
  file: {
    type: "positional",
    valueHint: "FILE",
    required: true,
    description: "a file; repeat for several, - for stdin",
  },
  name: { type: "string", valueHint: "NAME", description: "another name for the file, or one for stdin" },
  ...contentOptions,
  ...jsonArg,
} as const;

type PutCall = Call<typeof putArgs>;

export const contentPut = defineCommand({
  args: putArgs,
  isVariadic: true,
  examples: [
    "content put user-123 tree.png",
    "content put user-123 a.pdf b.pdf --branch formal",
    "content put user-123 - --name app.sql --url http://127.0.0.1:4600 < dump.sql",
  ],
  async run(call) {
    const { args, terminal } = call;
    const paths = call.words.slice(1);
    if (args.name !== undefined && paths.length > 1) throw misuse("--name can name one file only.");
    // If any file can't be read, nothing is stored.
    const files: Source[] = [];
    for (const path of paths) files.push(await sourceAt(path, args.name));
    const content = await withContent(args, async (handle) => {
      const stored: ContentBody[] = [];
      for (const file of files) stored.push(await putFile(call, handle, file));
      return stored;
    });
    if (args.json) terminal.print(toJson({ content }));
    return 0;
  },
});

interface Source {
  readonly path: string;
  readonly name: string | undefined;
  /** Unknown for stdin. */
  readonly size: number | undefined;
}

async function sourceAt(path: string, name: string | undefined): Promise<Source> {
  if (path === "-") return { path, name, size: undefined };
  return { path, name: name ?? basename(path), size: await checkFile(path) };
}

async function putFile({ args, terminal, signal }: PutCall, handle: ContentHandle, file: Source): Promise<ContentBody> {
  const { path, name, size } = file;
  const bar = new Bar(terminal);
  const shown = visible(name ?? "stdin");
  const onProgress = (bytes: number) => {
    const of = size === undefined ? "" : ` of ${sizeText(size)}`;
    bar.draw(`${sizeText(bytes)}${of}  ${shown}`, size ? bytes / size : undefined);
  };
  try {
    const bytes = path === "-" ? process.stdin : createReadStream(path);
    const stored = await handle.put(bytes, { ...(name !== undefined && { name }), signal, onProgress });
    bar.end();
    if (!args.json) terminal.print(`${stored.id.slice(0, 12)}  ${sizeText(stored.size)}  ${shown}`);
    return stored;
  } catch (error) {
    bar.end();
    stopIfAsked(signal, `"${shown}" was not stored.`);
    throw error;
  }
}
