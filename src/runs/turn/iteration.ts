// One iteration's model call: the request, its attempts, and what is shown while the model speaks.

import { untilAborted } from "../../base/abort.ts";
import { BoughError } from "../../base/errors.ts";
import type { LiveDraft, Message, NewMessage, Part, PromptRecord, ToolCallPart } from "../../events/index.ts";
import { callsOf } from "../../events/index.ts";
import type { IterationContext } from "../../middleware/index.ts";
import {
  callError,
  describeError,
  MessageAssembler,
  type ModelPart,
  type ModelRequest,
  noRoomError,
  ownRequest,
  type RequestOrigin,
  recordPrompt,
  requestToSend,
  retryDelay,
  streamModel,
  toPrompt,
  type Usage,
} from "../../models/index.ts";
import { closedTranscript, unclosedTranscript } from "../../projection/transcript.ts";
import type { BranchView } from "../../projection/view.ts";
import { storeParts } from "../../sessions/files.ts";
import { CallIds } from "../calls/call-ids.ts";
import { learnFrom, viewAfterOverflow, viewForCall } from "../compaction/between-calls.ts";
import type { Span } from "../emit.ts";
import { sendOtherwise } from "../files/again.ts";
import { attachReply } from "../files/attach.ts";
import { Partials } from "../structured-output/partials.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { seenOf } from "./keepable.ts";

/** What a model said, or a hook in its place. */
export interface Reply {
  readonly message: NewMessage & { readonly id: string };
  readonly calls: readonly ToolCallPart[];
  readonly finishReason: string;
  /** What the call used; absent without one. */
  readonly usage?: Usage;
  /** What the message was made from; absent without a call. */
  readonly prompt?: PromptRecord | undefined;
}

interface CallInProgress {
  readonly span: Span;
  /** What the turn has already. */
  readonly earlier: readonly Message[];
  /** What the request was built on. */
  readonly origin: RequestOrigin;
}

/** Asks the model for its next message; undefined when something stopped the turn before that. */
export async function nextReply(turn: ActiveTurn, span: Span): Promise<Reply | undefined> {
  const requestFor = (view: BranchView) => buildRequest(turn, view);
  const view = await viewForCall(turn, requestFor);
  if (turn.stopReason !== undefined) return undefined;
  const reply = await replyWithFiles(turn, view, span).catch(async (error) => {
    const shorter = await viewAfterOverflow(turn, error, requestFor);
    if (!shorter) throw error;
    return replyWithFiles(turn, shorter, span);
  });
  await learnFrom(turn, reply?.usage);
  return reply;
}

/** The reply, with the prompt's files in the forms and numbers that the provider takes. */
async function replyWithFiles(turn: ActiveTurn, view: BranchView, span: Span): Promise<Reply | undefined> {
  for (;;) {
    try {
      return await replyOn(turn, view, span);
    } catch (error) {
      if (turn.signal.aborted || !(await sendOtherwise(turn, error))) throw error;
    }
  }
}

/** The reply to what the model sees on a view. Hooks may change the request, so each view's has its own pass through them. */
async function replyOn(turn: ActiveTurn, view: BranchView, span: Span): Promise<Reply | undefined> {
  const request = buildRequest(turn, view);
  const origin = { prompt: request.prompt, upTo: view.seq, known: view.texts };
  const call: CallInProgress = { span, earlier: view.open?.messages ?? [], origin };
  const { pipeline, limits, atLimit } = turn.plan;
  const isPast = turn.iterations > limits.iterations;
  if (!pipeline.beforeIteration && !isPast) return withStoredFiles(turn, await askModel(turn, request, call));
  let answered: string | readonly Part[] | undefined;
  const context: IterationContext = {
    ...turn.hook,
    iteration: turn.iterations,
    request: pipeline.changesRequest.before ? ownRequest(request) : request,
    get isAnswered() {
      return answered !== undefined;
    },
    answer(content) {
      answered = content;
    },
  };
  await pipeline.beforeIteration?.(context);
  if (isPast && answered === undefined && turn.stopReason === undefined) await atLimit.beforeIteration?.(context);
  if (answered !== undefined) return withStoredFiles(turn, replyOf(turn, answered, call.earlier));
  if (turn.stopReason !== undefined) return undefined;
  return withStoredFiles(turn, await askModel(turn, requestToSend(context.request), call));
}

/** What a model or a hook said, with its files stored: the log holds no bytes. */
async function withStoredFiles(turn: ActiveTurn, reply: Reply): Promise<Reply> {
  const { content } = reply.message;
  if (typeof content === "string") return reply;
  const message = { ...reply.message, content: await storeParts(turn.fileDoor("model"), content) };
  await attachReply(turn, message);
  return { ...reply, message };
}

function replyOf(turn: ActiveTurn, content: string | readonly Part[], earlier: readonly Message[]): Reply {
  const id = turn.context.ids.next();
  const parts: readonly Part[] =
    typeof content === "string" ? [{ type: "text", text: content }] : new CallIds(id, earlier).ofMessage(content);
  const message = { id, role: "assistant", content: parts } as const;
  return { message, calls: callsOf(message), finishReason: "stop" };
}

function buildRequest(turn: ActiveTurn, view: BranchView): ModelRequest {
  const { plan } = turn;
  const { config, output } = plan;
  return {
    model: plan.model,
    prompt: toPrompt({
      ...(plan.instructions !== undefined && { instructions: plan.instructions }),
      history: closedTranscript(view),
      turn: unclosedTranscript(view),
      reasoning: config.sendReasoning ?? "turn",
    }),
    tools: turn.hidden.size === 0 ? plan.toolSpecs : plan.toolSpecs.filter(({ name }) => !turn.hidden.has(name)),
    settings: plan.settings,
    ...(plan.toolChoice !== undefined && { toolChoice: plan.toolChoice }),
    ...(output?.mode === "native" && { responseSchema: output.form.jsonSchema }),
    // Forks share the beginnings of their prompts, and the session's id is what they all have.
    ...(plan.promptCaching && { promptCaching: { key: turn.held.ref.sessionId } }),
  };
}

async function askModel(turn: ActiveTurn, request: ModelRequest, call: CallInProgress): Promise<Reply> {
  const { plan, signal, emitter, context } = turn;
  for (let attempt = 1; ; attempt++) {
    const id = context.ids.next();
    const assembler = new MessageAssembler();
    const attempted: Attempt = { ...call, id, assembler, prompt: undefined };
    try {
      const heard = hear(turn, request, attempted);
      // A stream lets go of its own accord (models/stream.ts, Stream-3); what a hook makes of it need not.
      await (plan.pipeline.wrapModelCall ? untilAborted(signal, heard) : heard);
      const { content, calls, finishReason, usage } = assembler;
      turn.addUsage(usage);
      turn.compaction.seeReply(id, usage, request.model, context.clock.now());
      const noRoom = noRoomError(request.model, assembler);
      if (noRoom) throw noRoom;
      const message = { id, role: "assistant", content } as const;
      return { message, calls, finishReason: finishReason ?? "unknown", usage, prompt: attempted.prompt };
    } catch (error) {
      const seen = seenOf({ id, role: "assistant", content: assembler.content } as const);
      turn.partial = seen && turn.draft(seen, { prompt: attempted.prompt });
      // The signal tells an abort, whatever the provider throws for it.
      if (signal.aborted) throw signal.reason;
      const now = context.clock.now();
      const delayMs = retryDelay({ error, attempt, policy: plan.retry, random: plan.random, now });
      if (delayMs === undefined) throw callError(error, { model: request.model, redact: plan.redact });
      turn.partial = undefined;
      const { attempts } = plan.retry;
      emitter.live(
        { type: "model-retry", messageId: id, attempt, attempts, delayMs, error: describeError(error, plan.redact) },
        call.span,
      );
      await context.clock.sleep(delayMs, signal);
      if (signal.aborted) throw signal.reason;
    }
  }
}

/** One attempt at a call. */
interface Attempt extends CallInProgress {
  readonly id: string;
  readonly assembler: MessageAssembler;
  /** What was sent: of several requests that a hook makes of one, the last. */
  prompt: PromptRecord | undefined;
}

/** Reads one answer to its end; throws when it fails or is cut off. */
async function hear(turn: ActiveTurn, request: ModelRequest, attempt: Attempt): Promise<void> {
  const { signal, emitter, plan } = turn;
  const { id, assembler, span } = attempt;
  const ids = new CallIds(id, attempt.earlier, turn.callIds);
  const { wrapModelCall, changesRequest } = plan.pipeline;
  const partials = plan.output && new Partials(plan.output);
  const onSend = (sent: ModelRequest, marks: readonly number[]) => {
    attempt.prompt = tellPrompt(sent, marks, attempt.origin);
  };
  const resolve = (asked: ModelRequest) => turn.files.resolve(asked);
  const next = (asked: ModelRequest) => streamModel(requestToSend(asked), { signal, onSend, resolve });
  // Its own for each attempt: what a hook changes in it holds for that one.
  const own = changesRequest.around ? ownRequest(request) : request;
  const stream = wrapModelCall ? wrapModelCall(turn.hook, own, next) : next(request);
  for await (const given of stream) {
    if (signal.aborted) throw signal.reason;
    if (given.type === "error") throw given.error;
    const part = ids.ofStream(given);
    assembler.add(part);
    const isOutput = partials?.add(part) === true;
    if (!emitter.isHeard) continue;
    const shown = toLiveEvent(part, id);
    if (shown) emitter.live(shown, span);
    if (!isOutput || !emitter.isWatched("output-partial")) continue;
    const output = partials?.next();
    if (output !== undefined) emitter.live({ type: "output-partial", messageId: id, output }, span);
  }
  if (!assembler.isFinished) {
    throw new BoughError("model_failed", "The model's answer was cut off.", { retryable: true });
  }
}

/** A hook may have put anything into a request: one that can't be told is sent all the same. */
function tellPrompt(...sent: Parameters<typeof recordPrompt>): PromptRecord | undefined {
  try {
    return recordPrompt(...sent);
  } catch {
    return undefined;
  }
}

/** What is shown of a part; most parts are shown as they are. */
function toLiveEvent(part: ModelPart, messageId: string): LiveDraft | undefined {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
      return { type: part.type, messageId, text: part.delta };
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return { type: part.type, messageId };
    case "tool-input-start":
      return { type: part.type, messageId, callId: part.id, toolName: part.toolName };
    case "tool-input-delta":
      return { type: part.type, messageId, callId: part.id, text: part.delta };
    case "tool-input-end":
      return { type: part.type, messageId, callId: part.id };
    default:
      return undefined;
  }
}
