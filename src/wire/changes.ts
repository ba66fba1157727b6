// Changes: what a live feed of a tenant or a session tells. Hints with ids; what is true now is read where it is kept.

import type { InteractionKind } from "../events/index.ts";

interface OnSession {
  readonly sessionId: string;
}

interface OnBranch extends OnSession {
  readonly branchId: string;
  /** The branch works for another one, as far as the process knows that wrote the change. */
  readonly visibility?: "hidden";
}

/** Something has changed. A change may be told twice, or without reason, but each is told unless the feed says `stale`. */
export type Change =
  | (OnSession & { readonly type: "session-create" | "session-delete" })
  /** Its metadata, or anything in it that another process wrote. */
  | (OnSession & { readonly type: "session-change" })
  | (OnBranch & { readonly type: "branch-create" })
  | (OnBranch & { readonly type: "branch-fork"; readonly forkedFrom: string })
  /** Its name, tags or metadata, or its messages: a revert or a compaction. */
  | (OnBranch & { readonly type: "branch-change" })
  | (OnBranch & { readonly type: "branch-delete" })
  | (OnBranch & {
      readonly type: "run-start";
      readonly turnId: string;
      readonly runId?: string;
      readonly agentId?: string;
    })
  | (OnBranch & {
      readonly type: "run-end";
      readonly turnId: string;
      readonly status: "completed" | "interrupted" | "failed" | "parked";
    })
  | (OnBranch & { readonly type: "question-open"; readonly interactionId: string; readonly kind: InteractionKind })
  /** It was answered or has expired. The end of its turn closes it, too. */
  | (OnBranch & { readonly type: "question-close"; readonly interactionId: string })
  /** Inputs that wait: one more, one less, or one with other words. */
  | (OnBranch & { readonly type: "queue-change" });

/** One message of a feed. The cursor of each is where a later connection can continue. */
export type ChangeFrame =
  | { readonly type: "change"; readonly cursor: string; readonly change: Change }
  /** What was missed since the cursor has been sent; what follows is live. */
  | { readonly type: "ready"; readonly cursor: string }
  /** Changes may have been missed: what is shown has to be read again. */
  | { readonly type: "stale"; readonly cursor: string }
  | {
      readonly type: "end";
      readonly reason: "slow" | "closing" | "unauthorized" | "deleted";
      readonly cursor: string;
    };
