// BranchLog: all facts of a branch, as far as they were read. It is what time travel, the log and the numbers beside messages need;
// the conversation is drawn before it is there.
//   BranchLog-1. `facts` has no gaps: fact n is at index n-1.
//   BranchLog-2. A view that was handed out never changes.
//   BranchLog-3. Listeners are told once a page, or once a frame for facts that arrive alone.

import {
  type BoughEvent,
  type BranchView,
  copyView,
  emptyView,
  type Fact,
  fold,
  type RemoteBranch,
  type UnknownFact,
} from "./bough.ts";

/** Facts between two views that are kept: a seek folds fewer than these. */
const stride = 500;
const pageSize = 1000;

export interface CallFact {
  readonly startedAt?: number;
  readonly returnedAt?: number;
  readonly child?: { readonly sessionId: string; readonly branchId: string; readonly seq: number };
}

export class BranchLog {
  readonly facts: (Fact | UnknownFact)[] = [];
  /** The position of each message, turn and question. */
  readonly seqOf = new Map<string, number>();
  readonly calls = new Map<string, CallFact>();
  /** Grows with every change, for React. */
  version = 0;
  isLoaded = false;
  error: unknown;
  readonly #handle: Pick<RemoteBranch, "events">;
  readonly #kept: BranchView[] = [emptyView()];
  readonly #listeners = new Set<() => void>();
  #latest: BranchView = emptyView();
  #shown: BranchView | undefined;
  #known = 0;
  #loading: Promise<void> | undefined;
  #frame = 0;

  constructor(handle: Pick<RemoteBranch, "events">) {
    this.#handle = handle;
  }

  get length(): number {
    return this.facts.length;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  getVersion = (): number => this.version;

  /** Reads the log up to a position that is known to exist. */
  reach(seq: number): void {
    this.#known = Math.max(this.#known, seq);
    if (this.length < this.#known) this.#loading ??= this.#load();
    else if (!this.isLoaded && this.#known > 0) {
      this.isLoaded = true;
      this.#tell();
    }
  }

  /** Takes in an event of the branch's stream; what is missing before it is read. */
  hear(event: BoughEvent): void {
    if (event.seq === undefined) return;
    if (event.seq === this.length + 1) {
      this.#add(event as Fact);
      this.#known = Math.max(this.#known, event.seq);
      this.#frame ||= requestAnimationFrame(() => {
        this.#frame = 0;
        this.#tell();
      });
    } else if (event.seq > this.length) this.reach(event.seq);
  }

  /** The branch as it was at a position (BranchLog-2). */
  at(seq: number): BranchView {
    const end = Math.min(seq, this.length);
    if (end === this.length) {
      if (this.#shown?.seq !== end) this.#shown = copyView(this.#latest);
      return this.#shown;
    }
    const view = copyView(this.#kept[Math.floor(end / stride)] ?? emptyView());
    for (let i = view.seq; i < end; i++) foldSafely(view, this.facts[i]!);
    return view;
  }

  async #load(): Promise<void> {
    try {
      while (this.length < this.#known) {
        const page = await this.#handle.events({ after: this.length, limit: pageSize });
        if (page.length === 0) break;
        for (const fact of page) if (fact.seq === this.length + 1) this.#add(fact);
        this.#tell();
      }
      this.isLoaded = true;
      this.error = undefined;
    } catch (error) {
      this.error = error;
    }
    this.#loading = undefined;
    this.#tell();
  }

  #add(fact: Fact | UnknownFact): void {
    this.facts.push(fact);
    this.seqOf.set(fact.id, fact.seq);
    foldSafely(this.#latest, fact);
    if (fact.seq % stride === 0) this.#kept.push(copyView(this.#latest));
    this.#noteCall(fact as Fact);
  }

  #noteCall(fact: Fact): void {
    if (fact.type === "message.added" && typeof fact.content !== "string") {
      for (const part of fact.content) {
        if (part.type === "tool-call") this.calls.set(String(part.toolCallId), { startedAt: fact.at });
      }
    } else if (fact.type === "tool.returned") {
      const before = this.calls.get(fact.callId);
      this.calls.set(fact.callId, { ...before, returnedAt: fact.at, ...(fact.child && { child: fact.child }) });
    }
  }

  #tell(): void {
    this.version++;
    for (const listener of this.#listeners) listener();
  }
}

/** A fact that this version can't fold moves the position and nothing else: the rest of the page goes on. */
function foldSafely(view: BranchView, fact: Fact | UnknownFact): void {
  try {
    fold(view, fact);
  } catch {
    view.seq = fact.seq;
  }
}
