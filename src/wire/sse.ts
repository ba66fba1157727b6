// Parses server-sent events from chunks of any size. An incomplete event is never returned.

export interface ServerSentEvent {
  readonly id?: string;
  readonly data: string;
}

/** Takes chunks in order and returns the complete events. */
export class SseReader {
  #rest = "";
  /** The reconnection delay that the server asked for, if any. */
  retryMs: number | undefined;

  read(piece: string): ServerSentEvent[] {
    const blocks = (this.#rest + piece).split("\n\n");
    this.#rest = blocks.pop()!;
    return blocks.flatMap((block) => {
      const retry = /^retry: ?(\d{1,9})$/m.exec(block)?.[1];
      if (retry !== undefined) this.retryMs = Number(retry);
      const event = parseBlock(block);
      return event ? [event] : [];
    });
  }
}

function parseBlock(block: string): ServerSentEvent | undefined {
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  if (data.length === 0) return undefined;
  return { data: data.join("\n"), ...(id !== undefined && { id }) };
}
