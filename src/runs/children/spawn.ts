// Spawning: a call asks for a child and gets what came of it. A failed child is tried again as often as its call is.

import { allowListeners } from "../../base/abort.ts";
import { BoughError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import type { JsonObject } from "../../base/json.ts";
import { type Message, type Part, textOf } from "../../events/index.ts";
import { addUsage, type Usage } from "../../models/index.ts";
import type { TurnRecord } from "../../projection/index.ts";
import type {
  CallAttempt,
  Child as ChildResult,
  SpawnableAgent,
  SpawnOptions,
  StartedTask,
} from "../../tools/index.ts";
import type { RunOptions } from "../config.ts";
import { outputOfCalls, readOutput } from "../structured-output/output.ts";
import { type OutputChoice, planOutput } from "../structured-output/plan.ts";
import { startTask } from "../tasks/start.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { addressOf, type ChildAddress, type ChildCallId } from "./address.ts";
import { Child, type ChildRequest } from "./child.ts";
import { adoptFiles } from "./files.ts";
import type { ClosedChild } from "./look.ts";
import { checkSpawn, resolvePolicy } from "./policy.ts";
import type { ChildAgent, ParentStamp } from "./port.ts";

/** A call of a turn that may spawn children. */
export interface SpawningCall extends CallAttempt {
  readonly turn: ActiveTurn;
  readonly callId: string;
  readonly toolName: string;
  readonly messageId: string;
  /** The message was written by an earlier run: the call may have spawned children then. */
  readonly isLeft: boolean;
  /** Counts the children without a key. */
  readonly count: { next: number };
  /** What else the child's run is asked with. */
  readonly config?: RunOptions["config"];
}

/** Spawns a child and waits for its end, or starts it in the background: a child's own children are always waited for. */
export function spawnChild(
  spawning: SpawningCall,
  agent: SpawnableAgent,
  input: string | readonly Part[],
  options?: SpawnOptions & { readonly mode?: never },
): Promise<ChildResult>;
export function spawnChild(
  spawning: SpawningCall,
  agent: SpawnableAgent,
  input: string | readonly Part[],
  options?: SpawnOptions,
): Promise<ChildResult | StartedTask>;
export async function spawnChild(
  spawning: SpawningCall,
  agent: SpawnableAgent,
  input: string | readonly Part[],
  options: SpawnOptions = {},
): Promise<ChildResult | StartedTask> {
  checkSpawn(options);
  const { turn, callId, toolName, messageId, attempt, signal, isLeft, count } = spawning;
  // Each child listens to it, so that many listeners are no leak.
  allowListeners(signal);
  const key = options.key ?? `#${++count.next}`;
  checkDepth(turn);
  const child = await turn.host.find(agent, turn.plan.stamp);
  // A tool that only reads may begin before the message that asked is written; its child must not.
  await turn.log.settle();
  const call = { ...turn.held.ref, born: await bornOf(turn), turnId: turn.turnId, callId, toolName, key };
  checkId(call.callId, "call");
  const isTask = options.mode === "background" && turn.plan.stamp.depth === 0;
  const run = runOptions(turn, { call, options, awaited: !isTask, config: spawning.config });
  const task = options.prompt === "parent" ? taskOf(child, input) : input;
  const request = { turn, host: turn.host, call, messageId, signal, agent: child, input: task, options, run };
  const policy = { ...options, ...resolvePolicy(options) };
  if (isTask) return startTask({ ...request, isFirst: false }, addressOf(call, child.name, policy, 1));
  for (let n = 1; ; n++) {
    const address = addressOf(call, child.name, policy, n);
    const isFirst = !isLeft && n === attempt && attempt === 1 && address.isOwn && policy.memory === "call";
    const closed = await bring({ ...request, isFirst }, address);
    if (closed.turn.status === "committed") {
      const files = await adoptFiles(turn, callId, { ref: address.ref, closed });
      return resultOf(options, address, { ...closed, files });
    }
    if (n >= attempt) throw failureOf(child, closed.turn);
  }
}

/** The task of a child whose prompt begins with its parent's instructions: its own come with it. */
function taskOf({ name, instructions }: ChildAgent, input: string | readonly Part[]): readonly Part[] {
  const parts: readonly Part[] = typeof input === "string" ? [{ type: "text", text: input }] : input;
  const role = name.replaceAll('"', "'");
  const begin = `<task role="${role}">\n${instructions === undefined ? "" : `${instructions}\n\n`}`;
  return [{ type: "text", text: begin }, ...parts, { type: "text", text: "\n</task>" }];
}

/** One try, which several who want the same child wait for together. */
function bring(request: ChildRequest, address: ChildAddress): Promise<ClosedChild> {
  const { turn, call } = request;
  return turn.children.once(address.turnId, async () => {
    const closed = await new Child(request, address).end();
    const { id: turnId, to: seq, status } = closed.turn;
    const end = { ...address.ref, turnId, seq, status: status === "committed" ? ("completed" as const) : status };
    turn.children.ended(call.callId, { end, usage: totalOf(closed.turn) });
    return closed;
  });
}

function checkDepth({ plan, emitter }: ActiveTurn): void {
  const { stamp, limits } = plan;
  if (stamp.depth < limits.maxDepth) return;
  emitter.live({ type: "limit-reach", limit: "depth", value: limits.maxDepth });
  const chain = stamp.chain.join(" > ");
  throw new BoughError(
    "limit_exceeded",
    `No further agent can be started below ${chain}: limits.maxDepth is ${limits.maxDepth}.`,
    {
      data: { limit: "depth", value: limits.maxDepth },
    },
  );
}

/** The first fact of the parent's branch. */
async function bornOf({ context, held }: ActiveTurn): Promise<string> {
  const cached = context.views.cachedToAppend(held.ref)?.expected.expectedHeader?.born;
  return String(cached ?? (await context.store.getBranch(held.ref))?.header.born ?? "");
}

interface AskedChild {
  readonly call: ChildCallId;
  readonly options: SpawnOptions;
  readonly awaited: boolean;
  readonly config?: RunOptions["config"] | undefined;
}

/** How a child is asked for: with the parent's caller, bounds and way to ask people. */
function runOptions(turn: ActiveTurn, { call, options, awaited, config }: AskedChild): RunOptions {
  const { plan, asked } = turn;
  const { permissionMode, tighten } = plan.config;
  const { sessionId, branchId, turnId, callId } = call;
  const { chain, depth } = plan.stamp;
  const { rootId } = turn;
  const place = { sessionId, branchId, turnId, callId, ...(rootId !== undefined && { rootId }) };
  const parent: ParentStamp = { ...place, chain, depth: depth + 1, awaited };
  const bound = plan.permissionBound;
  const left = awaited ? undefined : tokensLeft(turn, tighten?.limits?.tokens);
  const tightened = {
    ...tighten,
    ...(bound && { permissionMode: bound }),
    ...(left !== undefined && { limits: { ...tighten?.limits, tokens: left } }),
  };
  // Nobody waits for a task's questions: it parks, so that they take no process.
  const questions = awaited || plan.questions === "deny" ? plan.questions : "park";
  const context = options.context ?? plan.wholeRequest?.context;
  return {
    config: {
      ...config,
      ...(permissionMode && { permissionMode }),
      ...(options.limits && { limits: options.limits }),
      ...(Object.keys(tightened).length > 0 && { tighten: tightened }),
    },
    ...(options.output !== undefined && { output: options.output as OutputChoice }),
    ...(questions && { questions }),
    ...(context !== undefined && { context }),
    ...(Object.keys(asked.identity).length > 0 && { identity: asked.identity }),
    ...(asked.by !== undefined && { by: asked.by }),
    metadata: { parent: parent as unknown as JsonObject },
  };
}

/** What a task may use: what its turn has left when it begins, as nobody counts both together later. */
function tokensLeft(turn: ActiveTurn, bound = Number.POSITIVE_INFINITY): number | undefined {
  const { tokens = Number.POSITIVE_INFINITY } = turn.plan.limits;
  const left = Math.min(bound, Math.max(1, tokens - turn.tokens));
  return Number.isFinite(left) ? left : undefined;
}

/** What a turn and its children used. */
function totalOf({ usage = {}, children = {} }: TurnRecord): Usage {
  return addUsage(usage as Usage, children as Usage);
}

/** What came of the child, as its log tells: the same whoever ran it. */
async function resultOf(
  { output }: SpawnOptions,
  { ref }: ChildAddress,
  closed: ClosedChild & Pick<ChildResult, "files">,
): Promise<ChildResult> {
  const { turn, view, files } = closed;
  const messages = view.messages.filter(({ turnId }) => turnId === turn.id);
  const answer = messages.findLast(({ role }) => role === "assistant");
  return {
    status: "completed",
    text: textOf(answer ?? { content: "" }),
    ...(output !== undefined && { output: await outputOf(output as OutputChoice, messages) }),
    files,
    usage: { ...totalOf(turn) },
    ref: { ...ref, turnId: turn.id, seq: turn.to },
  };
}

async function outputOf(choice: OutputChoice, messages: readonly Message[]): Promise<unknown> {
  const plan = await planOutput(choice);
  const at = messages.findLastIndex(({ role }) => role === "assistant");
  const answer = messages[at];
  if (!answer) return undefined;
  const read =
    plan.mode === "native"
      ? await readOutput(plan.form, textOf(answer))
      : await outputOfCalls(plan, answer, messages[at + 1]);
  return read && "value" in read ? read.value : undefined;
}

function failureOf({ name }: ChildAgent, { status, reason, error }: TurnRecord): BoughError {
  const { message, code } = (error ?? {}) as { message?: string; code?: string };
  const words = message ?? reason ?? "no reason was given";
  const sentence = `The agent "${name}" ${status === "failed" ? "failed" : "was interrupted"}: ${words}`;
  return new BoughError("run_failed", /[.!?]$/.test(sentence) ? sentence : `${sentence}.`, {
    data: { agent: name, status, ...(reason !== undefined && { reason }), ...(code !== undefined && { code }) },
  });
}
