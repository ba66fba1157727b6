// Models: anything that implements the AI SDK's provider specification, called directly.

export { MessageAssembler } from "./assembler.ts";
export { describeError, httpStatus, isRetryable, retryAfterMs } from "./failure.ts";
export { ownRequest, requestToSend } from "./own-request.ts";
export type * from "./port.ts";
export { toPrompt } from "./prompt.ts";
export { resolveModel } from "./resolve.ts";
export { defaultRetry, type RetryPolicy, retryDelay } from "./retry.ts";
export { streamModel } from "./stream.ts";
export { addUsage } from "./usage.ts";
