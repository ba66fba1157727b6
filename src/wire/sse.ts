// Reading server-sent events from text that comes in pieces of any size. What was cut off in the middle never counts.

export interface ServerSentEvent {
  readonly id?: string;
  readonly data: string;
}

/** Give it the pieces in order; it gives back the events that are complete. */
export class SseReader {
  #rest = "";
  /** How long the other side wants to be left alone before the next connection, once it has said so. */
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
