// The history: what one or several killed processes told, one after the other, on the same store.
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
  /** The newest time of the writers' clock. */
  time = 0;
  ackedFacts = 0;
  /** Errors that a writer did not expect. */
  failures = [];
  /** Codes and sentences of the store's own failures. */
  refusals = [];
  #line = 0;
  #open = new Map();

  add(told) {
    this.#line++;
    if (told.do !== undefined) this.#begin(told);
    else if (told.n !== undefined) this.#answer(told);
    else if (told.facts !== undefined) this.entries.push({ ...told, line: this.#line });
  }

  /** The process is gone: what it had under way stays unknown. */
  died() {
    this.#line++;
    for (const write of this.#open.values()) write.end = this.#line;
    this.#open.clear();
  }

  #begin(told) {
    const write = { ...told, line: this.#line, end: Number.POSITIVE_INFINITY, status: "unknown" };
    this.time = Math.max(this.time, told.at);
    this.#open.set(told.n, write);
    this.writes.push(write);
    this.entries.push(write);
  }

  #answer({ n, ok, no, message }) {
    const write = this.#open.get(n);
    this.#open.delete(n);
    write.end = this.#line;
    if (ok !== undefined) {
      write.status = "acked";
      write.ok = ok;
      this.ackedFacts += write.events?.length ?? 0;
    } else if (failures.test(no)) this.refusals.push({ code: no, message, do: write.do, line: write.line });
    else write.status = "refused";
  }
}
