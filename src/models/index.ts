// Models: anything that implements the AI SDK's provider specification, called directly.

export { MessageAssembler } from "./assembler.ts";
export { callError, noRoomError } from "./call-error.ts";
export { describeError, isRetryable, retryAfterMs } from "./failure.ts";
export { addReminder, ownRequest, requestToSend } from "./own-request.ts";
export type * from "./port.ts";
export { toPrompt } from "./prompt.ts";
export { type RequestOrigin, recordPrompt } from "./provenance.ts";
export { reminderMessage } from "./reminders.ts";
export { resolveModel } from "./resolve.ts";
export { defaultRetry, type RetryPolicy, retryDelay } from "./retry.ts";
export { streamModel } from "./stream.ts";
export { addUsage, tokensOf } from "./usage.ts";
