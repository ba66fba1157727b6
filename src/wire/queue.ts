import type { InputSource, QueuedInput, QueuedMessage } from "../events/queue.ts";

/** An input that waits on a branch, as clients see it: without how its turn is to run. */
export interface QueuedInputBody {
  readonly id: string;
  readonly queuedAt: number;
  /**
   * `idle`: it begins a turn of its own. `next`: the same, before those that wait. `steer`: it joins the open turn between two
   * model calls, if that goes on long enough.
   */
  readonly when: "idle" | "next" | "steer";
  readonly messages: readonly QueuedMessage[];
  /** What sent it, if it was no person or program. */
  readonly source?: InputSource;
  /** The agent that takes it. */
  readonly agentId?: string;
  /** The user that sent it. */
  readonly by?: string;
  readonly editedAt?: number;
}

export function queuedInputBody(input: QueuedInput): QueuedInputBody {
  const { metadata: _metadata, request: _request, ...body } = input;
  return body;
}
