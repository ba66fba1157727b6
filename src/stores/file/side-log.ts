// SideLog: a small table kept as a log of its changes (checkpoints of a branch, content of a session), so that a change
// costs its own size, whatever the table's. Written anew when most of it is history.

import type { Disk, FileOperation } from "./disk.ts";
import { anythingWholeAfter, encodeLine, RawLines } from "./lines.ts";

interface State {
  readonly bytes: number;
  readonly crc: number;
  readonly lines: number;
}

const nothing: State = { bytes: 0, crc: 0, lines: 0 };

/** The text of an entry as lines.ts wants it. */
function bodyOf(entry: object): string {
  return JSON.stringify(entry).slice(0, -1);
}

export class SideLog<Entry extends object> {
  readonly path: string;
  #state: State = nothing;

  constructor(path: string) {
    this.path = path;
  }

  /** The entries in the order they were written. A torn end is cut; returns false when the file is damaged. */
  load(disk: Disk, each: (entry: Entry) => void, torn: (bytes: number) => void): boolean {
    const size = disk.size(this.path) ?? 0;
    const lines = new RawLines(disk, this.path, { offset: 0, crc: 0 }, size);
    while (lines.next()) {
      if (!lines.isRight) {
        if (anythingWholeAfter(disk, this.path, lines.offset, size)) return false;
        disk.truncate(this.path, lines.offset);
        torn(size - lines.offset);
        return true;
      }
      each(JSON.parse(`${lines.bytes.toString("utf8", lines.start, lines.stop)}}`) as Entry);
      this.#state = { bytes: lines.end, crc: lines.crc, lines: this.#state.lines + 1 };
    }
    return true;
  }

  /**
   * The operation that adds an entry. `live` gives the entries that say the same as the whole log; with `erase` they replace
   * it at once, so that nothing of what was dropped stays in it.
   */
  add(entry: Entry, live: readonly Entry[] | undefined, { erase = false } = {}): FileOperation {
    if (live && (erase || this.#state.lines > 2 * live.length + 64)) return this.#rewrite(live);
    const { bytes, crc } = encodeLine(bodyOf(entry), this.#state.crc);
    const at = this.#state.bytes;
    this.#state = { bytes: at + bytes.length, crc, lines: this.#state.lines + 1 };
    return { kind: "append", path: this.path, at, bytes };
  }

  #rewrite(live: readonly Entry[]): FileOperation {
    const pieces: Buffer[] = [];
    this.#state = nothing;
    for (const entry of live) {
      const { bytes, crc } = encodeLine(bodyOf(entry), this.#state.crc);
      this.#state = { bytes: this.#state.bytes + bytes.length, crc, lines: this.#state.lines + 1 };
      pieces.push(bytes);
    }
    return { kind: "write", path: this.path, bytes: Buffer.concat(pieces) };
  }
}
