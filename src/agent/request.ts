// Requests: what a run's options leave in the log, and what the log makes of a later run's options. What JSON can say is kept
// with the turn and used again; what it can't say is kept by name, and only a caller who passes it again can go on.

import { BoughError } from "../base/errors.ts";
import { checkedObject, factLimits, type Json, type JsonObject, ownJson } from "../base/json.ts";
import type { KeptOutput, KeptTool, RunIdentity, TurnRequest } from "../events/index.ts";
import { tightest } from "../projection/request.ts";
import type { KeptTurn, OutputChoice, OutputPlan, RunConfig, RunOptions } from "../runs/index.ts";
import { type AnyTool, checkedBySchema, type Tool, type ToolInput, type ToolSet } from "../tools/index.ts";
import type { AgentOptions } from "./options.ts";

type NamedModels = Pick<AgentOptions, "model" | "models">;

/** A header of such a name carries a credential, which has no place in a log. */
const credentialHeader = /auth|key|token|secret|cookie|credential|password|session/i;

/** What a run was given beside its options, made ready. */
interface Prepared {
  /** The run's own tools. */
  readonly tools: Iterable<Tool>;
  readonly output: OutputPlan | undefined;
}

/** What the log keeps of a run's options; nothing for a run that says nothing. */
export function keepRequest(agent: NamedModels, options: RunOptions, prepared: Prepared): TurnRequest | undefined {
  const { questions, context, identity } = options;
  const { output } = prepared;
  const missing: string[] = [];
  const config = keepConfig(agent, options.config ?? {}, missing);
  const tools = keepTools(prepared.tools, missing);
  for (const { name } of options.config?.middleware ?? []) missing.push(`config.middleware.${name}`);
  const request: TurnRequest = {
    ...(Object.keys(config).length > 0 && { config: checkedObject(config, "A run's config", factLimits) }),
    ...(output && { output: output.kept }),
    ...(Object.keys(tools).length > 0 && { tools }),
    ...(questions !== undefined && { questions }),
    ...(context !== undefined && { context: ownJson(context, "A run's context", factLimits) }),
    ...(identity && { identity: keptIdentity(identity) }),
    ...(missing.length > 0 && { missing }),
  };
  return Object.keys(request).length > 0 ? request : undefined;
}

function keepConfig(agent: NamedModels, config: RunConfig, missing: string[]): JsonObject {
  const { tools: _tools, middleware: _middleware, model, headers, compaction, ...rest } = config;
  const kept = { ...rest } as JsonObject;
  if (isKeepable(compaction)) kept.compaction = compaction as unknown as Json;
  else if (compaction !== undefined) missing.push("config.compaction");
  if (model !== undefined && model !== agent.model) {
    const name = nameOf(agent, model);
    if (name === undefined) missing.push("config.model");
    else kept.model = name;
  }
  if (headers) {
    const [open, secret] = splitHeaders(headers);
    if (Object.keys(open).length > 0) kept.headers = open;
    for (const name of secret) missing.push(`config.headers.${name}`);
  }
  return kept;
}

/** A strategy and a function of the model are code. */
function isKeepable(compaction: RunConfig["compaction"]): boolean {
  if (typeof compaction !== "object") return compaction !== undefined;
  return compaction.strategy === undefined && typeof compaction.window !== "function";
}

function nameOf({ models = {} }: NamedModels, model: NonNullable<RunConfig["model"]>): string | undefined {
  if (typeof model === "string") return model;
  return Object.keys(models).find((name) => models[name] === model);
}

function splitHeaders(headers: Readonly<Record<string, string>>): [JsonObject, string[]] {
  const open: JsonObject = {};
  const secret: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (credentialHeader.test(name)) secret.push(name);
    else open[name] = value;
  }
  return [open, secret];
}

/** Tools that a client or the provider runs are data; what runs in this process is code. */
function keepTools(tools: Iterable<Tool>, missing: string[]): Record<string, KeptTool> {
  const kept: Record<string, KeptTool> = {};
  for (const tool of tools) {
    const { name, description, inputSchema, permission, isChecked, provider } = tool;
    if (tool.execute || typeof permission === "function") missing.push(`config.tools.${name}`);
    else {
      kept[name] = {
        ...(description !== undefined && { description }),
        inputSchema,
        ...(permission && { permission }),
        ...(isChecked && { checked: true }),
        ...(provider && { provider }),
      };
    }
  }
  return kept;
}

function keptIdentity({ tenant, user, scopes }: RunIdentity): RunIdentity {
  return {
    ...(tenant && { tenant }),
    ...(user !== undefined && { user }),
    ...(scopes && { scopes: [...scopes] }),
  };
}

/** The names of what a turn was asked with and neither its log nor these options have. */
export function missingFrom(agent: NamedModels, { request }: KeptTurn, { config = {} }: RunOptions): string[] {
  const missing = (request?.missing ?? []).filter((name) => !isGiven(config, name));
  const model = config.model ?? request?.config?.model;
  const isUnknown = typeof model === "string" && !model.includes("/") && !Object.hasOwn(agent.models ?? {}, model);
  return isUnknown ? [...missing, `models.${model}`] : missing;
}

function isGiven(config: RunConfig, name: string): boolean {
  const [, kind, rest] = /^config\.(tools|headers|middleware)\.(.+)$/.exec(name) ?? [];
  if (kind === "middleware") return config.middleware?.some((each) => each.name === rest) ?? false;
  if (kind !== undefined) return Object.hasOwn(Object(config[kind as "tools" | "headers"]), rest!);
  return config[name.slice("config.".length) as keyof RunConfig] !== undefined;
}

/** The options of a run that takes a turn up: what the turn kept, with what the caller says over it. */
export function resumeOptions(agent: NamedModels, kept: KeptTurn, options: RunOptions): RunOptions {
  const missing = missingFrom(agent, kept, options);
  if (missing.length > 0) throw incomplete(missing);
  const { request } = kept;
  if (!request) return options;
  const { output = request.output && restoreOutput(request.output) } = options;
  const { questions = request.questions, context = request.context, identity = request.identity } = options;
  return {
    ...options,
    config: restoreConfig(request, options.config ?? {}),
    ...(output !== undefined && { output }),
    ...(questions !== undefined && { questions }),
    ...(context !== undefined && { context }),
    ...(identity && { identity }),
  };
}

function incomplete(missing: readonly string[]): BoughError {
  const sentence =
    `The turn was asked with ${missing.join(", ")}, which the log can't keep. ` +
    "Resume it with run(undefined, options) and pass the same again, or override it.";
  return new BoughError("request_incomplete", sentence, { data: { missing } });
}

function restoreConfig({ config = {}, tools = {} }: TurnRequest, own: RunConfig): RunConfig {
  const kept = config as RunConfig;
  const said = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) as RunConfig;
  // The caller's come first: who passes the same set again gets the order in which the model saw it.
  const all = { ...own.tools, ...restoreTools(tools, own.tools) };
  return {
    ...kept,
    ...said,
    ...(kept.limits && own.limits && { limits: { ...kept.limits, ...own.limits } }),
    ...(kept.tighten && own.tighten && { tighten: tightest(kept.tighten as JsonObject, own.tighten as JsonObject) }),
    ...(kept.headers && own.headers && { headers: { ...kept.headers, ...own.headers } }),
    ...(Object.keys(all).length > 0 && { tools: all }),
  };
}

function restoreTools(tools: NonNullable<TurnRequest["tools"]>, own: ToolSet = {}): ToolSet {
  const left = Object.entries(tools).filter(([name]) => !Object.hasOwn(own, name));
  const restored = left.map(([name, { inputSchema, checked, provider, ...tool }]) => {
    const schema = checked ? checkedBySchema(inputSchema) : inputSchema;
    return [name, { ...tool, inputSchema: schema, ...(provider && { type: "provider", ...provider }) }] as const;
  });
  return Object.fromEntries(restored) as Record<string, AnyTool>;
}

function restoreOutput({ schema, union, checked, ...asked }: KeptOutput): OutputChoice {
  const restored = (each: JsonObject): ToolInput => (checked ? checkedBySchema(each) : { jsonSchema: each });
  if (!union) return { ...asked, schema: restored(schema!) };
  return { ...asked, union: Object.fromEntries(Object.entries(union).map(([name, each]) => [name, restored(each)])) };
}

/** Checks who asks against the tenant that an agent is bound to; the tenant is added where the caller left it out. */
export function bindIdentity(tenant: string | undefined, identity: RunIdentity | undefined): RunIdentity | undefined {
  if (tenant === undefined) return identity;
  if ((identity?.tenant ?? tenant) !== tenant) {
    throw new BoughError(
      "invalid_argument",
      `The agent is bound to the tenant "${tenant}"; identity names another one.`,
    );
  }
  return tenant === "" && !identity ? undefined : { ...identity, tenant };
}

/** Whether an agent bound to a tenant (`undefined`: to none in particular) may go on with a turn. */
export function isOfTenant(tenant: string | undefined, { request }: KeptTurn): boolean {
  return tenant === undefined || (request?.identity?.tenant ?? "") === tenant;
}

export function foreignTurn(): BoughError {
  return new BoughError("turn_foreign", "The turn belongs to another tenant than the agent.");
}

/** The run's context as the agent's schema gives it. */
export async function readContext(schema: AgentOptions["context"], context: unknown): Promise<unknown> {
  if (!schema) return context;
  const { value, issues } = (await schema["~standard"].validate(context)) as {
    value?: unknown;
    issues?: readonly { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] }[];
  };
  if (!issues) return value;
  const [first] = issues;
  const keys = (first?.path ?? []).map((each) => String(typeof each === "object" ? each.key : each));
  const where = ["context", ...keys].join(".");
  throw new BoughError("invalid_argument", `${where} does not fit the agent's schema: ${first?.message}`, {
    data: { path: keys as Json[] },
  });
}
