// From options to a plan: the agent's options, overridden by those of one run.

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
import { type LanguageModel, type ModelChoice, type ModelSettings, resolveModel } from "../models/index.ts";
import { mergeRequests, permissionModes } from "../projection/request.ts";
import { planRunCompaction } from "../runs/compaction/options.ts";
import {
  type AgentSettings,
  type Durable,
  type KeptTurn,
  type Limits,
  outputSpecs,
  outputToolChoice,
  planOutput,
  type RunConfig,
  type RunOptions,
  type RunPlan,
  type Tightening,
} from "../runs/index.ts";
import { latestOnly } from "../sessions/index.ts";
import { prepareTools, type Tool, type ToolSet, type ToolSource, toolSpec } from "../tools/index.ts";
import type { AgentOptions } from "./options.ts";
import { bindIdentity, foreignTurn, isOfTenant, keepRequest, readContext, resumeOptions } from "./request.ts";
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

export async function prepareBase(
  options: AgentOptions,
  { limits, clock }: AgentSettings,
  more: readonly ToolSet[] = [],
): Promise<AgentBase> {
  const tracing = tracingOf(options, clock);
  const pipeline = pipelineOf(options, {});
  const traced = tracing ? pipelineOf(options, {}, tracing) : pipeline;
  const tools = await prepareTools([...toolSets(options.tools), ...more, ...pipeline.tools]);
  const atLimit = limiterOf(options, limits);
  return { pipeline, traced, tracing, atLimit, tools, toolSpecs: [...tools.values()].map(toolSpec) };
}

export function limiterOf(options: AgentOptions, { iterations: max }: Limits): Middleware {
  return iterationLimit({ max, onLimit: options.limits?.onIterations ?? "stop" });
}

function tracingOf({ telemetry = true }: AgentOptions, clock: Clock): Tracing | undefined {
  if (telemetry === false) return undefined;
  const { recordContent = false, tracer } = telemetry === true ? {} : telemetry;
  return new Tracing({ recordContent, ...(tracer && { tracer }), clock });
}

/** An agent that is ready to run. */
export interface PlannedAgent {
  readonly options: AgentOptions;
  readonly settings: AgentSettings;
  readonly base: AgentBase;
}

/** One run's plan. Nothing is made anew that the run does not change. A turn that was left open goes on as it was asked. */
export async function planRun(
  { options, settings, base }: PlannedAgent,
  own: RunOptions,
  { kept, fallback }: { kept: KeptTurn | undefined; fallback: RunOptions["questions"] | undefined },
): Promise<RunPlan> {
  if (kept && !isOfTenant(options.tenant, kept)) throw foreignTurn();
  const identity = kept && !own.identity ? undefined : bindIdentity(options.tenant, own.identity);
  const said = { ...own, ...(identity && { identity }) };
  const asked = kept ? resumeOptions(options, kept, said) : said;
  const { config = {}, output, questions = fallback } = asked;
  const { metadata, by = identity?.user, clientGraceMs, ifWaiting } = own;
  const limits = limitsOf(settings, config);
  const tracing = (await base.tracing?.isOn()) ? base.tracing : undefined;
  const permissionBound = modeOf(options, config) ?? options.permissions?.mode;
  const isOther = config.middleware || config.permissionMode || config.tighten?.permissionMode;
  const shared = tracing ? base.traced : base.pipeline;
  const pipeline = isOther ? pipelineOf(options, config, tracing) : shared;
  const isKept = (name: string) => !Object.hasOwn(own.config?.tools ?? {}, name);
  const equipped = config.tools || config.middleware ? await withExtra(base, config, isKept) : base;
  const instructions = instructionsOf(options, config);
  const outputPlan = output === undefined ? undefined : await planOutput(output);
  const request = keepRequest(options, said, { tools: ownTools(equipped, own), output: own.output && outputPlan });
  const wholeRequest = mergeRequests(kept?.request, request);
  return {
    ...settings,
    limits,
    model: await modelOf(options, config.model ?? options.model),
    pipeline,
    hasToolHooks: [...(config.middleware ?? []), ...(options.middleware ?? [])].some(isAroundTools),
    atLimit: limits === settings.limits ? base.atLimit : limiterOf(options, limits),
    compaction: planRunCompaction(settings.compaction, options.compaction, config.compaction),
    tools: equipped.tools,
    ...toolsFor(equipped, config, outputPlan),
    config,
    settings: modelSettings({ ...options.settings, ...settingsIn(config) }, config.tighten),
    runContext: await readContext(options.context, asked.context),
    ...(instructions !== undefined && { instructions }),
    ...(outputPlan && { output: outputPlan }),
    ...(questions && { questions }),
    ...(permissionBound && { permissionBound }),
    ...(clientGraceMs !== undefined && { clientGraceMs }),
    ...(ifWaiting && { ifWaiting }),
    ...(metadata && { metadata }),
    ...(by !== undefined && { by }),
    ...(request && { request }),
    ...(wholeRequest && { wholeRequest }),
  };
}

/** A model by the name that the agent gives it, by the provider's, or as it is. */
export function modelOf({ models = {} }: AgentOptions, choice: ModelChoice): Promise<LanguageModel> {
  const isNamed = typeof choice === "string" && Object.hasOwn(models, choice);
  return resolveModel(isNamed ? models[choice]! : choice);
}

/** The tools that a run's caller brings along. */
function ownTools({ tools }: Pick<AgentBase, "tools">, { config }: RunOptions): Tool[] {
  return Object.keys(config?.tools ?? {}).flatMap((name) => tools.get(name) ?? []);
}

function limitsOf(settings: AgentSettings, { limits, tighten }: RunConfig): Limits {
  if (!limits && !tighten?.limits) return settings.limits;
  const loosest = { ...settings.limits, ...limits };
  const bounds = Object.entries(tighten?.limits ?? {}).filter(([, bound]) => bound !== undefined);
  const tight = bounds.map(([name, bound]) => [name, Math.min(bound, loosest[name as keyof Limits] ?? bound)]);
  return checkLimits({ ...loosest, ...Object.fromEntries(tight) });
}

function modelSettings(settings: ModelSettings, { maxOutputTokens: bound }: Tightening = {}): ModelSettings {
  if (bound === undefined) return settings;
  return { ...settings, maxOutputTokens: Math.min(bound, settings.maxOutputTokens ?? bound) };
}

/** The tools as the model sees them: the agent's, the run's, and those that take the output. */
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
  const { limits, middleware, compaction, sendReasoning, tighten, ...settings } = rest;
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
  const mode = modeOf(options, config);
  const own = [...(config.middleware ?? []), ...(options.middleware ?? []), ...(tracing ? [tracing.middleware] : [])];
  const builtIn: Middleware[] = [
    errorLimits(),
    repeatedCalls(),
    permissions({ ...options.permissions, ...(mode && { mode }) }, config.permissionMode ? "run" : "agent"),
  ];
  // A middleware of one of these names replaces the built-in one.
  return buildPipeline([...own, ...builtIn.filter(({ name }) => !own.some((each) => each.name === name))]);
}

/** The permission mode of a run, where it says one; never looser than `tighten` says. */
export function modeOf(
  { permissions }: AgentOptions,
  { permissionMode, tighten }: RunConfig,
): RunConfig["permissionMode"] {
  const bound = tighten?.permissionMode;
  if (bound === undefined) return permissionMode;
  const mode = permissionMode ?? permissions?.mode ?? "ask";
  return permissionModes.indexOf(bound) > permissionModes.indexOf(mode) ? bound : mode;
}

/** The agent's tools, and those that a run brings along. */
async function withExtra(
  base: AgentBase,
  { tools, middleware = [] }: RunConfig,
  isKept: (name: string) => boolean,
): Promise<Pick<AgentBase, "tools" | "toolSpecs">> {
  const extra = await prepareTools([
    ...(tools ? [tools] : []),
    ...middleware.flatMap((each) => (each.tools ? [each.tools] : [])),
  ]);
  const own = new Map(extra);
  for (const name of extra.keys()) {
    if (!base.tools.has(name)) continue;
    // The turn brought it along, and the agent has learnt it since.
    if (isKept(name) && Object.hasOwn(tools ?? {}, name)) own.delete(name);
    else throw new BoughError("invalid_argument", `The agent has a tool "${name}" already.`);
  }
  const all = new Map([...base.tools, ...own]);
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
  for (const name of ["iterations", "parallelTools", "calls"] as const) {
    if (!Number.isInteger(limits[name]) || limits[name] < 1) throw badOption(`limits.${name} must be an integer ≥ 1.`);
  }
  for (const name of ["answerMs", "turnMs"] as const) {
    const ms = limits[name];
    if (ms !== undefined && !(ms > 0)) throw badOption(`limits.${name} must be a number of milliseconds above 0.`);
  }
  const { tokens, maxDepth } = limits;
  if (tokens !== undefined && !(tokens > 0)) throw badOption("limits.tokens must be a number above 0.");
  if (!Number.isInteger(maxDepth) || maxDepth < 0) throw badOption("limits.maxDepth must be an integer ≥ 0.");
  if (!Number.isInteger(limits.tasks) || limits.tasks < 0) throw badOption("limits.tasks must be an integer ≥ 0.");
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
    throw badOption("store must be a store object, a directory or a URL.");
  }
  if (!(leaseMs > 0)) throw badOption("leaseMs must be a number of milliseconds above 0.");
  if ("attempts" in retry && !(typeof retry.attempts === "number" && retry.attempts >= 1))
    throw badOption("retry.attempts must be a number ≥ 1.");
  if (durable !== undefined) checkDurable(durable);
}

const frequencies: readonly unknown[] = ["per-turn", "per-iteration", "manual"];

/** A misspelt option would go unnoticed until a checkpoint is needed. */
function checkDurable(durable: Durable): void {
  const { checkpoints = "per-turn", retention = latestOnly() } = Object(durable) as Durable;
  if (typeof durable !== "object" || !frequencies.includes(checkpoints)) {
    throw badOption(`durable.checkpoints must be one of ${frequencies.map((each) => `"${each}"`).join(", ")}.`);
  }
  if (typeof retention !== "object")
    throw badOption("durable.retention must be made by latestOnly(), lastN(n), fullHistory() or timeBased(ms).");
}
