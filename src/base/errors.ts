// One error class with a closed set of codes. The code that throws decides the data and whether a retry can help.

/** Every code a `BoughError` can carry. */
export type ErrorCode =
  | "invalid_argument"
  | "limit_exceeded"
  | "session_not_found"
  | "session_exists"
  | "branch_not_found"
  | "branch_exists"
  | "branch_ambiguous"
  | "branch_protected"
  | "branch_has_children"
  | "message_not_on_branch"
  | "position_not_on_branch"
  | "turn_open"
  | "nothing_to_resume"
  | "nothing_to_compact"
  | "compaction_not_found"
  | "prompt_not_kept"
  | "request_incomplete"
  | "turn_foreign"
  | "run_active"
  | "epoch_stale"
  | "sequence_conflict"
  | "version_conflict"
  | "event_conflict"
  | "event_unknown"
  | "event_invalid"
  | "checkpoint_not_found"
  | "checkpoint_exists"
  | "checkpoint_stale"
  | "content_not_found"
  | "content_too_large"
  | "agent_not_found"
  | "interaction_not_found"
  | "interaction_closed"
  | "input_not_found"
  | "input_closed"
  | "queue_full"
  | "task_not_found"
  | "task_ended"
  | "no_answer"
  | "run_failed"
  | "workflow_changed"
  | "model_failed"
  | "context_overflow"
  | "output_invalid"
  | "store_closed"
  | "store_locked"
  | "store_busy"
  | "store_unavailable"
  | "store_read_only"
  | "store_corrupt"
  | "store_too_new"
  | "store_unsupported"
  | "dependency_missing"
  | "aborted";

const brand = Symbol.for("bough.error");

/** The only error Bough throws on purpose: a code, a message, data, and whether a retry can succeed. */
export class BoughError<Code extends string = ErrorCode> extends Error {
  override readonly name: string = "BoughError";
  readonly code: Code;
  readonly data: Readonly<Record<string, unknown>>;
  readonly retryable: boolean;

  constructor(
    code: Code,
    message: string,
    options: { data?: Record<string, unknown>; cause?: unknown; retryable?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data ?? {};
    this.retryable = options.retryable ?? false;
    Object.defineProperty(this, brand, { value: true });
  }

  /** Recognises a `BoughError` from any copy of the package, optionally of one code. */
  static is(error: unknown, code?: ErrorCode): error is BoughError {
    if (typeof error !== "object" || error === null || !(brand in error)) return false;
    return code === undefined || (error as unknown as BoughError).code === code;
  }
}
