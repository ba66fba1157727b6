// The options of agents and runs: one table for each, checked when the agent is created and when a run begins.

import { BoughError } from "../base/errors.ts";
import {
  anything,
  checkOptions,
  checkSpelling,
  checkValues,
  flag,
  fn,
  isObject,
  number,
  type OptionCheck,
  type OptionChecks,
  object,
  oneOf,
  optionTable,
  text,
  texts,
  whole,
} from "../base/options.ts";
import type { RunIdentity } from "../events/index.ts";
import type { Middleware } from "../middleware/index.ts";
import type { ModelSettings, RetryPolicy } from "../models/index.ts";
import { agentCompaction, checkCompaction, runCompaction } from "../runs/compaction/options.ts";
import type { Durable, InterruptRequest, Limits, RunConfig, RunOptions, Tightening } from "../runs/index.ts";
import type { AgentOptions } from "./options.ts";
import type { KeepRecoveringOptions, RecoveryOptions } from "./recovering.ts";

const middleware: OptionCheck = {
  fits: (value) => Array.isArray(value) && value.every((each) => isObject(each) && typeof each.name === "string"),
  wanted: "a list of middleware, each an object with a name",
};
const middlewareTable = optionTable<Middleware>({
  name: text,
  state: {
    fits: (value) => Array.isArray(value) && value.every((each) => isObject(each) && typeof each.key === "string"),
    wanted: "a list of state made by defineState",
  },
  tools: object,
  beforeTurn: fn,
  afterTurn: fn,
  beforeIteration: fn,
  afterIteration: fn,
  wrapModelCall: fn,
  beforeTools: fn,
  afterTools: fn,
  beforeToolCall: fn,
  wrapToolCall: fn,
  afterToolCall: fn,
  onError: fn,
  beforeFork: fn,
});
const toolSet: OptionCheck = { fits: isObject, wanted: "an object of tools by name" };
const toolSets: OptionCheck = {
  fits: (value) => isObject(value) || (Array.isArray(value) && value.every(isObject)),
  wanted: "an object of tools by name, or a list of such objects and of tool sources",
};
const model: OptionCheck = {
  fits: (value) => typeof value === "string" || isObject(value),
  wanted: 'an AI SDK model object or "provider/model"',
};
const signal: OptionCheck = {
  fits: (value) =>
    isObject(value) && typeof value.aborted === "boolean" && typeof value.addEventListener === "function",
  wanted: "an AbortSignal",
};
const branch: OptionCheck = {
  fits: (value) => isObject(value) && typeof value.sessionId === "string" && typeof value.id === "string",
  wanted: "a branch, with its sessionId and its id",
};
const toolChoice: OptionCheck = {
  fits: (value) => ["auto", "none", "required"].includes(value as string) || (isObject(value) && "tool" in value),
  wanted: '"auto", "none", "required" or { tool: name }',
};
const permissionMode = oneOf("ask", "allow", "deny");

const settings: OptionChecks<ModelSettings> = {
  temperature: number,
  topP: number,
  topK: number,
  maxOutputTokens: number,
  presencePenalty: number,
  frequencyPenalty: number,
  stop: texts,
  seed: whole,
  reasoning: oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max", "provider-default"),
  headers: object,
  providerOptions: object,
};
const settingsTable = optionTable<ModelSettings>(settings);

// The values of limits are checked together with those they override (plan.ts).
const limits: OptionChecks<Limits> = {
  iterations: anything,
  calls: anything,
  parallelTools: anything,
  answerMs: anything,
  turnMs: anything,
  tokens: anything,
  maxDepth: anything,
  tasks: anything,
};
const limitsTable = optionTable<Limits>(limits);
const agentLimitsTable = optionTable<NonNullable<AgentOptions["limits"]>>({
  ...limits,
  onIterations: oneOf("stop", "ask"),
});
const retryTable = optionTable<RetryPolicy>({ attempts: anything, baseMs: number, factor: number, maxMs: number });
const durableTable = optionTable<Durable>({ checkpoints: anything, retention: anything, pendingWrites: flag });
const permissionTable = optionTable<NonNullable<AgentOptions["permissions"]>>({ mode: permissionMode, tools: object });

/** The option `events` of an agent or a server. */
export const ownEventList: OptionCheck = {
  fits: (value) => Array.isArray(value) && value.every((each) => isObject(each) && typeof each.is === "function"),
  wanted: "a list of events made by defineEvent",
};

const agentTable = optionTable<AgentOptions>({
  id: { fits: (value) => typeof value === "string" && value !== "", wanted: "a non-empty string" },
  name: text,
  model,
  models: {
    fits: (value) => isObject(value) && Object.values(value).every(model.fits),
    wanted: "an object of models by name",
  },
  context: { fits: (value) => "~standard" in Object(value), wanted: "a Standard Schema, such as zod's" },
  tenant: text,
  events: ownEventList,
  instructions: text,
  agents: fn,
  handoffs: object,
  tools: toolSets,
  store: anything,
  persistAfterTurn: flag,
  durable: anything,
  middleware,
  limits: object,
  permissions: object,
  retry: object,
  settings: object,
  promptCaching: flag,
  compaction: agentCompaction,
  content: object,
  contentLimits: object,
  audio: object,
  telemetry: { fits: (value) => typeof value === "boolean" || isObject(value), wanted: "true, false or an object" },
  leaseMs: anything,
  redact: {
    fits: (value) => value === false || typeof value === "function",
    wanted: "a function from string to string, or false",
  },
  cacheBytes: number,
  logger: { fits: (value) => typeof Object(value).warn === "function", wanted: "an object with a function warn" },
  clock: object,
  ids: object,
  random: fn,
  owner: text,
});

const configTable = optionTable<RunConfig>({
  ...settings,
  model,
  instructions: text,
  addInstructions: text,
  tools: toolSet,
  toolChoice,
  permissionMode,
  limits: object,
  middleware,
  compaction: runCompaction,
  sendReasoning: oneOf("turn", "all"),
  tighten: object,
});
const tightenTable = optionTable<Tightening>({ permissionMode, limits: object, maxOutputTokens: number });
const identityTable = optionTable<RunIdentity>({ tenant: text, user: text, scopes: texts });

const runTable = optionTable<RunOptions>({
  sessionId: text,
  branchId: text,
  branch,
  config: object,
  events: oneOf("own", "tree"),
  signal,
  output: anything,
  questions: oneOf("wait", "park", "deny"),
  clientGraceMs: number,
  ifWaiting: oneOf("supersede", "refuse"),
  metadata: object,
  context: anything,
  by: text,
  identity: object,
});

/** Refuses invalid options of an agent (`invalid_argument`). */
export function checkAgentOptions(options: AgentOptions): void {
  const whose = "An agent's options";
  checkOptions(whose, options, agentTable);
  const { limits: given, permissions, retry, durable } = options;
  if (options.settings) checkOptions(whose, options.settings, settingsTable, "settings.");
  if (given) checkOptions(whose, given, agentLimitsTable, "limits.");
  if (permissions) checkOptions(whose, permissions, permissionTable, "permissions.");
  if (retry) checkOptions(whose, retry, retryTable, "retry.");
  if (isObject(durable)) checkOptions(whose, durable, durableTable, "durable.");
  checkMiddleware(options.middleware);
  checkCompaction(whose, options.compaction, "compaction.");
}

/** A middleware may be an object of a class with members of its own, so only misspelt hooks are refused among its keys. */
function checkMiddleware(list: readonly Middleware[] = []): void {
  for (const each of list) {
    const whose = `The middleware "${each.name}"`;
    checkSpelling(whose, each, middlewareTable);
    checkValues(whose, each, middlewareTable);
  }
}

/** Refuses invalid options of a run (`invalid_argument`). */
export function checkRunOptions(options: RunOptions): void {
  const whose = "A run's options";
  checkOptions(whose, options, runTable);
  const { config, branch: held, sessionId, branchId } = options;
  if (config) {
    checkOptions(whose, config, configTable, "config.");
    checkMiddleware(config.middleware);
    checkCompaction(whose, config.compaction, "config.compaction.");
    if (config.limits) checkOptions(whose, config.limits, limitsTable, "config.limits.");
    if (config.tighten) checkOptions(whose, config.tighten, tightenTable, "config.tighten.");
    if (config.tighten?.limits) checkOptions(whose, config.tighten.limits, limitsTable, "config.tighten.limits.");
  }
  if (options.identity) checkOptions(whose, options.identity, identityTable, "identity.");
  if (held === undefined) return;
  if (sessionId !== undefined && sessionId !== held.sessionId) throw otherPlace("sessionId", sessionId, held.sessionId);
  if (branchId !== undefined && branchId !== held.id) throw otherPlace("branchId", branchId, held.id);
}

// Infinity is a period, too: never again.
const period: OptionCheck = {
  fits: (value) => typeof value === "number" && value >= 0,
  wanted: "a number of milliseconds",
};
const recovery: OptionChecks<RecoveryOptions> = { attempts: anything, run: object };
const recoverTable = optionTable<RecoveryOptions & { sessionId?: string; resume?: boolean }>({
  ...recovery,
  sessionId: text,
  resume: flag,
});
const keepRecoveringTable = optionTable<KeepRecoveringOptions>({
  ...recovery,
  everyMs: period,
  scanEveryMs: period,
  parallelRuns: anything,
});
const closeTable = optionTable<{ drainMs?: number }>({ drainMs: period });
const interruptTable = optionTable<InterruptRequest>({ runId: text, reason: text });
const submitTable = optionTable<{ ifActive?: string; inputId?: string }>({
  ifActive: oneOf("reject", "queue", "steer", "interrupt"),
  inputId: text,
});

/** Refuses invalid options of an input that is not waited for (`invalid_argument`). */
export function checkSubmitOptions(options: object): void {
  if (!isObject(options)) throw new BoughError("invalid_argument", "The options of submit must be an object.");
  const { ifActive, inputId, ...run } = options as Record<string, unknown>;
  checkOptions("The options of submit", { ifActive, inputId }, submitTable);
  checkRunOptions(run);
}

/** Refuses invalid options of `recover`, `keepRecovering`, `interrupt` and `close` (`invalid_argument`). */
export function checkCall(name: keyof typeof callTables, options: unknown): void {
  checkOptions(`The options of ${name}`, options, callTables[name]);
  const { run } = options as RecoveryOptions;
  if (run) checkRunOptions(run);
}

const callTables = {
  recover: recoverTable,
  keepRecovering: keepRecoveringTable,
  interrupt: interruptTable,
  close: closeTable,
};

/** `run` and `submit` take the scope among their options, other methods before them: JavaScript would drop the options. */
export function refuseMore(method: string, more: readonly unknown[]): void {
  if (more.every((each) => each === undefined)) return;
  const sentence = `${method} takes an input and options. Put the session into the options: { sessionId, … }.`;
  throw new BoughError("invalid_argument", sentence);
}

/** Whether it can be listened to: what is none is refused with the other options. */
export function isSignal(value: unknown): value is AbortSignal {
  return signal.fits(value);
}

function otherPlace(option: string, said: string, held: string): BoughError {
  const sentence = `${option} is "${said}", but the branch in hand has "${held}". Give the branch or its ids.`;
  return new BoughError("invalid_argument", sentence, { data: { option } });
}
