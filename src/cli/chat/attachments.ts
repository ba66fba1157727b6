// Attachments: the files that go with the next message of a chat. They are checked when they are attached and stored when the
// message is sent, because its session may not exist before.
//   Attachments-1. Files stay attached until all of them are stored, so that a failed upload can be repeated.

import { createReadStream } from "node:fs";
import { homedir } from "node:os";
import { basename } from "node:path";
import { refineType } from "../../base/media-type.ts";
import { sizeText } from "../../base/size-text.ts";
import { visible } from "../../chat/text.ts";
import type { ContentHandle, Input } from "../../wire/index.ts";
import { Bar } from "../bar.ts";
import { misuse } from "../command.ts";
import { checkFile } from "../files.ts";
import type { Terminal } from "../terminal.ts";

export interface Attachment {
  readonly path: string;
  readonly name: string;
  readonly size: number;
}

export class Attachments {
  readonly #terminal: Terminal;
  #files: readonly Attachment[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  get files(): readonly Attachment[] {
    return this.#files;
  }

  /** Attaches a file as it was typed: with spaces, in quotes, or with backslashes, as terminals paste it. */
  async add(typed: string): Promise<void> {
    const path = pathOf(typed);
    const size = await checkFile(path);
    if (size === 0) throw misuse(`"${path}" is empty.`);
    const others = this.#files.filter((file) => file.path !== path);
    this.#files = [...others, { path, name: basename(path), size }];
  }

  clear(): void {
    this.#files = [];
  }

  /** Stores the files and returns the message with them. */
  async send(text: string, content: ContentHandle, signal: AbortSignal): Promise<Input> {
    const parts: Exclude<Input, string>[number][] = [{ type: "text", text }];
    // They may have changed since.
    for (const { path } of this.#files) await checkFile(path);
    for (const file of this.#files) parts.push(await this.#store(file, content, signal));
    this.clear();
    return parts as Input;
  }

  async #store({ path, name, size }: Attachment, content: ContentHandle, signal: AbortSignal) {
    const bar = new Bar(this.#terminal);
    const onProgress = (bytes: number) =>
      bar.draw(`${sizeText(bytes)} of ${sizeText(size)}  ${visible(name)}`, bytes / size);
    try {
      const { uri, mediaType } = await content.put(createReadStream(path), { name, signal, onProgress });
      const file = { type: "file", filename: name, mediaType: refineType(mediaType, name) } as const;
      return { ...file, data: { type: "url", url: uri } } as const;
    } finally {
      bar.end();
    }
  }
}

function pathOf(typed: string): string {
  const quoted = /^(["'])(.+)\1$/.exec(typed)?.[2];
  const path = quoted ?? (process.platform === "win32" ? typed : typed.replace(/\\(.)/g, "$1"));
  return path.replace(/^~(?=\/)/, homedir());
}
