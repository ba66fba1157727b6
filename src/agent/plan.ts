// From options to a plan: what an agent was told, with what one run is told laid over it.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import {
  buildPipeline,
  errorLimits,
  iterationLimit,
  type Middleware,
  type Pipeline,
  permissions,
  repeatedCalls,
} from "../middleware/index.ts";
import { type ModelSettings, resolveModel } from "../models/index.ts";
import {
  type AgentSettings,
  type Durable,
  type Limits,
  outputSpecs,
  outputToolChoice,
  planOutput,
  type RunConfig,
  type RunOptions,
  type RunPlan,
} from "../runs/index.ts";
import { latestOnly } from "../sessions/index.ts";
import { prepareTools, type Tool, type ToolSet, type ToolSource, toolSpec } from "../tools/index.ts";
import type { AgentOptions } from "./options.ts";
import { Tracing } from "./tracing.ts";

/** What does not change from run to run. */
export interface AgentBase {
  readonly pipeline: Pipeline;
  /** The same with telemetry in it, for runs that are traced. */
  readonly traced: Pipeline;
  readonly tracing: Tracing | undefined;
  readonly atLimit: Middleware;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly toolSpecs: RunPlan["toolSpecs"];
}

export async function prepareBase(options: AgentOptions, { limits, clock }: AgentSettings): Promise<AgentBase> {
  const tracing = tracingOf(options, clock);
  const pipeline = pipelineOf(options, {});
  const traced = tracing ? pipelineOf(options, {}, tracing) : pipeline;
  const tools = await prepareTools([...toolSets(options.tools), ...pipeline.tools]);
  const atLimit = limiterOf(options, limits);
  return { pipeline, traced, tracing, atLimit, tools, toolSpecs: [...tools.values()].map(toolSpec) };
}

function limiterOf(options: AgentOptions, { iterations: max }: Limits): Middleware {
  return iterationLimit({ max, onLimit: options.limits?.onIterations ?? "stop" });
}

function tracingOf({ telemetry = true }: AgentOptions, clock: Clock): Tracing | undefined {
  if (telemetry === false) return undefined;
  return new Tracing({ recordContent: telemetry !== true && telemetry.recordContent, clock });
}

/** One run's plan. Nothing is made anew that the run does not change. */
export async function planRun(
  options: AgentOptions,
  settings: AgentSettings,
  base: AgentBase,
  { config = {}, output, questions, clientGraceMs, ifWaiting, metadata }: RunOptions,
): Promise<RunPlan> {
  const limits = config.limits ? checkLimits({ ...settings.limits, ...config.limits }) : settings.limits;
  const tracing = (await base.tracing?.isOn()) ? base.tracing : undefined;
  const isOther = config.middleware || config.permissionMode;
  const shared = tracing ? base.traced : base.pipeline;
  const pipeline = isOther ? pipelineOf(options, config, tracing) : shared;
  const equipped = config.tools || config.middleware ? await withExtra(base, config) : base;
  const instructions = instructionsOf(options, config);
  const outputPlan = output === undefined ? undefined : await planOutput(output);
  return {
    ...settings,
    limits,
    model: await resolveModel(config.model ?? options.model),
    pipeline,
    hasToolHooks: [...(config.middleware ?? []), ...(options.middleware ?? [])].some(isAroundTools),
    atLimit: config.limits ? limiterOf(options, limits) : base.atLimit,
    tools: equipped.tools,
    ...toolsFor(equipped, config, outputPlan),
    config,
    settings: { ...options.settings, ...settingsIn(config) },
    ...(instructions !== undefined && { instructions }),
    ...(outputPlan && { output: outputPlan }),
    ...(questions && { questions }),
    ...(clientGraceMs !== undefined && { clientGraceMs }),
    ...(ifWaiting && { ifWaiting }),
    ...(metadata && { metadata }),
  };
}

/** What the model is told of tools: the agent's and the run's, and those that take the output. */
function toolsFor(
  { tools, toolSpecs }: Pick<AgentBase, "tools" | "toolSpecs">,
  { toolChoice }: RunConfig,
  output: RunPlan["output"],
): Pick<RunPlan, "toolSpecs" | "toolChoice"> {
  if (output?.mode !== "tool") return { toolSpecs, ...(toolChoice !== undefined && { toolChoice }) };
  for (const name of output.forms.keys()) {
    if (tools.has(name)) throw badOption(`A tool is named "${name}", as the one that takes the output.`);
  }
  const specs = [...toolSpecs, ...outputSpecs(output)];
  return { toolSpecs: specs, toolChoice: toolChoice ?? outputToolChoice(specs) };
}

/** What a config says to the model, without what it says to the run. What is undefined is not said: the agent's stays. */
function settingsIn(config: RunConfig): ModelSettings {
  const { model, instructions, addInstructions, tools, toolChoice, permissionMode, ...rest } = config;
  const { limits, middleware, sendReasoning, ...settings } = rest;
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

const aroundTools = [
  "beforeTools",
  "afterTools",
  "beforeToolCall",
  "wrapToolCall",
  "afterToolCall",
  "onError",
] as const;

function isAroundTools(middleware: Middleware): boolean {
  return aroundTools.some((hook) => middleware[hook] !== undefined);
}

/** A run's own middleware is outermost, then the agent's, then what is built in. */
function pipelineOf(options: AgentOptions, config: RunConfig, tracing?: Tracing): Pipeline {
  const { permissionMode: mode } = config;
  const own = [...(config.middleware ?? []), ...(options.middleware ?? []), ...(tracing ? [tracing.middleware] : [])];
  const builtIn: Middleware[] = [
    errorLimits(),
    repeatedCalls(),
    permissions({ ...options.permissions, ...(mode && { mode }) }),
  ];
  // Whoever brings one of these wants it in place of ours.
  return buildPipeline([...own, ...builtIn.filter(({ name }) => !own.some((each) => each.name === name))]);
}

/** The agent's tools, and those that a run brings along. */
async function withExtra(
  base: AgentBase,
  { tools, middleware = [] }: RunConfig,
): Promise<Pick<AgentBase, "tools" | "toolSpecs">> {
  const extra = await prepareTools([
    ...(tools ? [tools] : []),
    ...middleware.flatMap((each) => (each.tools ? [each.tools] : [])),
  ]);
  for (const name of extra.keys()) {
    if (base.tools.has(name)) throw new BoughError("invalid_argument", `The agent has a tool "${name}" already.`);
  }
  const all = new Map([...base.tools, ...extra]);
  return { tools: all, toolSpecs: [...all.values()].map(toolSpec) };
}

function instructionsOf(options: AgentOptions, config: RunConfig): string | undefined {
  const base = config.instructions ?? options.instructions;
  if (config.addInstructions === undefined) return base;
  return base === undefined ? config.addInstructions : `${base}\n\n${config.addInstructions}`;
}

export function toolSets(tools: AgentOptions["tools"]): readonly (ToolSet | ToolSource)[] {
  if (tools === undefined) return [];
  return isList(tools) ? tools : [tools];
}

function isList(tools: NonNullable<AgentOptions["tools"]>): tools is readonly (ToolSet | ToolSource)[] {
  return Array.isArray(tools);
}

/** A limit of zero tools would let a batch wait for ever. */
export function checkLimits(limits: Limits): Limits {
  for (const name of ["iterations", "parallelTools"] as const) {
    if (!Number.isInteger(limits[name]) || limits[name] < 1) throw badOption(`limits.${name} is a count from 1 on.`);
  }
  for (const name of ["answerMs", "turnMs"] as const) {
    const ms = limits[name];
    if (ms !== undefined && !(ms > 0)) throw badOption(`limits.${name} is a number of milliseconds.`);
  }
  return limits;
}

function badOption(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}

export function checkOptions({ model, store, leaseMs = 1, retry = {}, durable }: AgentOptions): void {
  if (model === undefined || model === null) {
    throw badOption('An agent needs a model: an AI SDK model object or "provider/model".');
  }
  if (store !== undefined && typeof store !== "string" && typeof store !== "object") {
    throw badOption("store is a store object, a directory, or a URL.");
  }
  if (!(leaseMs > 0)) throw badOption("leaseMs is a number of milliseconds.");
  if ("attempts" in retry && !(Number(retry.attempts) >= 1)) throw badOption("retry.attempts is a count from 1 on.");
  if (durable !== undefined) checkDurable(durable);
}

const frequencies: readonly unknown[] = ["per-turn", "per-iteration", "manual"];

/** Whoever asks for checkpoints in a way that is none would find that there are none when they are needed. */
function checkDurable(durable: Durable): void {
  const { checkpoints = "per-turn", retention = latestOnly() } = Object(durable) as Durable;
  if (typeof durable !== "object" || !frequencies.includes(checkpoints)) {
    throw badOption(`durable.checkpoints is one of: ${frequencies.join(", ")}.`);
  }
  if (typeof retention !== "object")
    throw badOption("durable.retention is made by latestOnly(), lastN(n) and the like.");
}
