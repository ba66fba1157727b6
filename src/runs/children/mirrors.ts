// Mirrors: the questions of one child, shown on its parent. Answers find their way by themselves: who answers a mirror answers
// the question behind it first (sessions/interactions.ts).
//   Mirrors-1. Every open question of a child has one mirror on the parent, also after a restart.
//   Mirrors-2. A mirror is closed as the child's question was: with the same answer, or expired.

import type { JsonObject } from "../../base/json.ts";
import { interactionAnswered, interactionExpired } from "../../events/drafts.ts";
import type { AgentStamp, Fact, UnknownFact } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import type { Interaction } from "../../projection/index.ts";
import { closeMirror } from "../../sessions/interactions.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";

export interface MirrorsOptions {
  readonly turn: ActiveTurn;
  readonly callId: string;
  /** The child: where it works, and which agent it is. */
  readonly ref: BranchRef;
  readonly agent: AgentStamp;
}

/** A question of the child, as its fact or its view has it. */
type AskedOfChild = Pick<Interaction, "id" | "kind" | "request"> & { readonly expiresAt?: number | undefined };

export class Mirrors {
  readonly #options: MirrorsOptions;
  /** What is being written, in the order of the child's log. */
  #writing: Promise<void> = Promise.resolve();
  /** The child's questions that need no mirror any more. */
  readonly #closed = new Set<string>();

  constructor(options: MirrorsOptions) {
    this.#options = options;
  }

  /** Told of every fact of the child's turn, in order. */
  see(fact: Fact | UnknownFact): void {
    if (fact.type === "interaction.opened") this.open(fact);
    else if (fact.type === "interaction.answered" || fact.type === "interaction.expired") this.#close(fact);
  }

  /** Mirrors-1. */
  open({ id, kind, request, expiresAt }: AskedOfChild): void {
    const { turn, callId } = this.#options;
    const shown = { ...request, child: this.#childOf(id) } as JsonObject;
    this.#then(async () => {
      if (!this.#closed.has(id)) await turn.asking.mirror({ of: id, kind, callId, request: shown, expiresAt });
    });
  }

  /** Mirrors-2. The answer may be on the mirror already: who answered there wrote both. */
  #close(fact: Fact<"interaction.answered" | "interaction.expired">): void {
    const { turn } = this.#options;
    this.#closed.add(fact.interactionId);
    this.#then(async () => {
      const interactionId = turn.asking.mirrorId(fact.interactionId);
      if (interactionId === undefined) return;
      const { context, held, log } = turn;
      const draft =
        fact.type === "interaction.answered"
          ? interactionAnswered(context, { interactionId, answer: fact.answer, by: fact.by })
          : interactionExpired(context, interactionId, fact.reason ?? "no answer");
      await closeMirror(context, held.ref, draft);
      await log.catchUp();
    });
  }

  /** A parent that can write no more loses nothing: the run that resumes it opens and closes the same mirrors. */
  #then(work: () => Promise<void>): void {
    this.#writing = this.#writing.then(work).catch(() => {});
  }

  #childOf(interactionId: string): JsonObject {
    const { ref, agent } = this.#options;
    const { id, name, chain, depth } = agent;
    return { agent: name ?? id ?? chain.at(-1)!, chain: [...chain], depth, ...ref, interactionId };
  }

  /** Resolves when everything seen so far is on the parent. */
  settle(): Promise<void> {
    return this.#writing;
  }
}
