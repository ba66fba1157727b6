// The trace: a store that says before every write what it is about to do, and after it what was acknowledged. Whoever
// reads the trace of a killed process knows what must be there, what may be, and what can't.
//
//   T1. The intent is out of the process before the store hears of the write; the acknowledgement follows the answer.
//   T2. An intent carries everything that a checker needs to recognise the write: ids, positions, hashes of payloads.
//   T3. An id that may have been used before is created only while nothing else is under way on its session, so that
//       every write belongs to one life of a branch.

import { createHash } from "node:crypto";

export function hashOf(data) {
  return createHash("sha256").update(data).digest("base64url").slice(0, 16);
}

/** What is told of each write: its session, its intent, its acknowledgement. */
const writes = {
  createSession: {
    intent: ({ id, metadata, state, branch }) => ({ sessionId: id, metadata, state, ...newBranch(branch) }),
    answer: ({ version }) => ({ version }),
  },
  updateSession: {
    intent: (sessionId, { metadata = {}, state = {} }) => ({ sessionId, metadata, state }),
    answer: ({ version }) => ({ version }),
  },
  deleteSession: { intent: (sessionId) => ({ sessionId }) },
  createBranch: {
    intent: (sessionId, branch) => ({ sessionId, ...newBranch(branch), parent: branch.parent }),
    answer: ({ seq, createdAt }) => ({ seq, createdAt }),
  },
  deleteBranch: {
    intent: (ref, { recursive = false, also = [] } = {}) => ({ ...refOf(ref), recursive, also }),
    answer: (removed) => ({ removed }),
  },
  append: {
    intent: (ref, events, { expectedSeq, epoch, header, claim, release } = {}) => {
      const run = claim && { runId: claim.runId, over: claim.over };
      return { ...refOf(ref), events: events.map(brief), expectedSeq, epoch, header, claim: run, release };
    },
    answer: ({ first, last, claim }) => ({ first, last, epoch: claim?.epoch }),
  },
  renewRun: { intent: (ref, { epoch }) => ({ ...refOf(ref), epoch }) },
  releaseRun: { intent: (ref, { epoch }) => ({ ...refOf(ref), epoch }), answer: (released) => ({ released }) },
  saveCheckpoint: { intent: (ref, { id, seq, data }) => ({ ...refOf(ref), id, seq, data }) },
  deleteCheckpoints: { intent: (ref, ids) => ({ ...refOf(ref), ids }) },
  saveSegment: { intent: (ref, { to, lines }) => ({ ...refOf(ref), to, hash: hashOf(lines.join("\n")) }) },
  putContent: { intent: (ref, { id, size, mediaType, name }) => ({ ...refOf(ref), id, size, mediaType, name }) },
  deleteContent: { intent: (ref, id) => ({ ...refOf(ref), id }) },
};

/** The store with every write told to `emit`; `isReused` tells the ids that are created more than once. */
export function traced(store, { emit, clock, isReused }) {
  const underWay = new UnderWay();
  const { segments, content } = store;
  /** Writes that a part of the store does. */
  const parts = {
    saveSegment: segments?.save,
    putContent: (_ref, row, writer) => writer.commit(row),
    deleteContent: (ref, id) => content.delete(ref, id),
  };
  let count = 0;

  async function write(name, args) {
    const { intent, answer = () => ({}) } = writes[name];
    const told = intent(...args);
    const { sessionId } = told;
    if (name.startsWith("create") && isReused(told.branchId)) await underWay.none(sessionId);
    const n = ++count;
    emit({ n, do: name, at: clock.now(), ...told });
    underWay.begin(sessionId);
    try {
      const value = await (parts[name]?.(...args) ?? store[name](...args));
      emit({ n, ok: answer(value) });
      return value;
    } catch (error) {
      emit({ n, no: error.code ?? "unknown", message: String(error.message) });
      throw error;
    } finally {
      underWay.end(sessionId);
    }
  }

  const told =
    (name) =>
    (...args) =>
      write(name, args);
  const tracedParts = {
    segments: segments && { ...segments, save: told("saveSegment") },
    content: content && tracedContent(content, write),
  };
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(tracedParts, name)) return tracedParts[name];
      if (Object.hasOwn(writes, name)) return (...args) => write(name, args);
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** An upload is told when it is committed: nothing of it shows before. */
function tracedContent(content, write) {
  const tracedWriter = (ref, writer) => {
    let finished;
    return {
      add: (chunk) => writer.add(chunk),
      finish: async () => {
        finished = await writer.finish();
        return finished;
      },
      commit: (row) => write("putContent", [ref, { ...finished, ...row }, writer]),
      abort: () => writer.abort(),
    };
  };
  const changed = {
    write: async (ref) => tracedWriter(ref, await content.write(ref)),
    delete: (ref, id) => write("deleteContent", [ref, id]),
  };
  return new Proxy(content, {
    get: (target, name) =>
      changed[name] ?? (typeof target[name] === "function" ? target[name].bind(target) : target[name]),
  });
}

class UnderWay {
  #counts = new Map();
  #waiting = new Map();

  begin(sessionId) {
    this.#counts.set(sessionId, (this.#counts.get(sessionId) ?? 0) + 1);
  }

  end(sessionId) {
    this.#counts.set(sessionId, this.#counts.get(sessionId) - 1);
    if (this.#counts.get(sessionId) > 0) return;
    for (const wake of this.#waiting.get(sessionId) ?? []) wake();
    this.#waiting.delete(sessionId);
  }

  async none(sessionId) {
    while ((this.#counts.get(sessionId) ?? 0) > 0) {
      await new Promise((wake) => {
        this.#waiting.set(sessionId, [...(this.#waiting.get(sessionId) ?? []), wake]);
      });
    }
  }
}

function newBranch({ id, header, events }) {
  return { branchId: id, header, events: events.map(brief) };
}

function brief({ id, data }) {
  return { id, hash: hashOf(data) };
}

function refOf({ sessionId, branchId }) {
  return { sessionId, branchId };
}
