// From options to a plan: what an agent was told, with what one run is told laid over it.

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
import { resolveModel } from "../models/index.ts";
import type { AgentSettings, Limits, RunConfig, RunOptions, RunPlan } from "../runs/index.ts";
import { prepareTools, readSchema, type Tool, type ToolSet, type ToolSource, toolSpec } from "../tools/index.ts";
import type { AgentOptions } from "./options.ts";

/** What does not change from run to run. */
export interface AgentBase {
  readonly pipeline: Pipeline;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly toolSpecs: RunPlan["toolSpecs"];
}

export async function prepareBase(options: AgentOptions, limits: Limits): Promise<AgentBase> {
  const pipeline = pipelineOf(options, limits, {});
  const tools = await prepareTools([...toolSets(options.tools), ...pipeline.tools]);
  return { pipeline, tools, toolSpecs: [...tools.values()].map(toolSpec) };
}

/** One run's plan. Nothing is made anew that the run does not change. */
export async function planRun(
  options: AgentOptions,
  settings: AgentSettings,
  base: AgentBase,
  { config = {}, output, questions, metadata }: RunOptions,
): Promise<RunPlan> {
  const limits = config.limits ? { ...settings.limits, ...config.limits } : settings.limits;
  const isOther = config.middleware || config.permissionMode || config.limits;
  const pipeline = isOther ? pipelineOf(options, limits, config) : base.pipeline;
  const { tools, toolSpecs } = config.tools || config.middleware ? await withExtra(base, config) : base;
  const instructions = instructionsOf(options, config);
  const schema = output === undefined ? undefined : await readSchema("output", output);
  return {
    ...settings,
    limits,
    model: await resolveModel(config.model ?? options.model),
    pipeline,
    tools,
    toolSpecs,
    config: options.settings ? { ...options.settings, ...config } : config,
    ...(instructions !== undefined && { instructions }),
    ...(schema && { output: { jsonSchema: schema.inputSchema, parse: schema.parse } }),
    ...(questions && { questions }),
    ...(metadata && { metadata }),
  };
}

/** A run's own middleware is outermost, then the agent's, then what is built in. */
function pipelineOf(options: AgentOptions, limits: Limits, config: RunConfig): Pipeline {
  const { permissionMode: mode } = config;
  const list: Middleware[] = [
    ...(config.middleware ?? []),
    ...(options.middleware ?? []),
    errorLimits(),
    repeatedCalls(),
    iterationLimit({ max: limits.iterations, onLimit: options.limits?.onIterations ?? "stop" }),
    permissions({ ...options.permissions, ...(mode && { mode }) }),
  ];
  return buildPipeline(list);
}

/** The agent's tools, and those that a run brings along. */
async function withExtra(base: AgentBase, { tools, middleware = [] }: RunConfig): Promise<Omit<AgentBase, "pipeline">> {
  const extra = await prepareTools([...(tools ? [tools] : []), ...middleware.flatMap((each) => (each.tools ? [each.tools] : []))]);
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

export function checkOptions({ model, store }: AgentOptions): void {
  if (model === undefined || model === null) {
    throw new BoughError("invalid_argument", 'An agent needs a model: an AI SDK model object or "provider/model".');
  }
  if (store !== undefined && typeof store !== "string" && typeof store !== "object") {
    throw new BoughError("invalid_argument", "store is a store object, a directory, or a URL.");
  }
}
