// The history: what killed processes told, one after the other or several at a time, on the same store.
//
//   H1. A write is "acked" (must be there), "refused" (can't be) or "unknown" (may be, wholly).
//   H2. `line` and `end` say when a write began and when it was over at the latest: its answer, or the death of its
//       process. Of two writes, one came before the other if its end is before the other's line.

/** Refusals that say nothing about the outcome: the store itself failed. */
const failures = /^store_|^unknown$/;

export class History {
  writes = [];
  /** Everything in the order it was told, the public interface's acknowledgements included. */
  entries = [];
  ackedFacts = 0;
  /** Errors that a writer did not expect. */
  failures = [];
  /** Codes and sentences of the store's own failures. */
  refusals = [];
  #line = 0;
  #open = new Map();

  /** One thing that a writer told, or its end; `writer` says whose. They come in the order of time. */
  add(told) {
    this.#line++;
    if (told.died !== undefined) this.#died(told.writer);
    else if (told.do !== undefined) this.#begin(told);
    else if (told.n !== undefined) this.#answer(told);
    else if (told.facts !== undefined) this.entries.push({ ...told, line: this.#line });
  }

  /** The process is gone: what it had under way stays unknown. */
  #died(writer) {
    for (const [key, write] of this.#open) {
      if (write.writer !== writer) continue;
      write.end = this.#line;
      this.#open.delete(key);
    }
  }

  #begin(told) {
    const write = { ...told, line: this.#line, end: Number.POSITIVE_INFINITY, status: "unknown" };
    this.#open.set(keyOf(told), write);
    this.writes.push(write);
    this.entries.push(write);
  }

  #answer({ ok, no, message, ...told }) {
    const write = this.#open.get(keyOf(told));
    this.#open.delete(keyOf(told));
    write.end = this.#line;
    if (ok !== undefined) {
      write.status = "acked";
      write.ok = ok;
      this.ackedFacts += write.events?.length ?? 0;
    } else if (failures.test(no))
      this.refusals.push({ code: no, message, do: write.do, line: write.line, end: write.end });
    else write.status = "refused";
  }
}

function keyOf({ writer, n }) {
  return `${writer}/${n}`;
}
