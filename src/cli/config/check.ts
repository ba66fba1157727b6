// Checks a configuration. Errors name the file and the field.

import * as v from "valibot";
import { type AgentOptions, createAgent } from "../../agent/index.ts";
import { BoughError } from "../../base/errors.ts";
import { resolveModel } from "../../models/index.ts";
import type { BoughConfig, ConfiguredAgent } from "../../server/index.ts";
import { agentConfigSchema, idSchema } from "../../wire/index.ts";
import { misuse } from "../command.ts";
import type { LoadedFile } from "./load.ts";

/** A configuration with its agents' options resolved. */
export interface CheckedConfig extends Omit<BoughConfig, "agents" | "defaultAgent"> {
  readonly agents: Readonly<Record<string, AgentOptions>>;
  readonly defaultAgent?: AgentOptions;
}

const any = v.optional(v.any());
const text = v.optional(v.string("must be a string"));
const texts = v.optional(v.array(v.string("must be a string"), "must be an array of strings"));
const object = v.optional(
  v.custom<object>((value) => typeof value === "object" && value !== null, "must be an object"),
);
const isFunction = (value: unknown) => typeof value === "function";
const redaction = v.optional(
  v.custom((value) => value === false || isFunction(value), "must be a function from string to string, or false"),
);

const agentFields = {
  events: any,
  name: text,
  model: v.custom(
    (value) => (typeof value === "string" && value !== "") || (typeof value === "object" && value !== null),
    'must be an AI SDK model or a string "provider/model"',
  ),
  models: object,
  context: object,
  instructions: text,
  agents: v.optional(v.custom(isFunction, "must be a function from an id to an agent")),
  handoffs: object,
  tools: object,
  durable: object,
  middleware: v.optional(v.array(v.any(), "must be an array")),
  limits: object,
  permissions: object,
  retry: object,
  redact: redaction,
  settings: object,
  promptCaching: v.optional(v.boolean("must be true or false")),
  compaction: any,
  content: object,
  contentLimits: object,
  audio: object,
  telemetry: any,
  leaseMs: v.optional(v.number("must be a number of milliseconds")),
  logger: object,
  clock: object,
  ids: object,
  random: any,
  owner: text,
  cacheBytes: v.optional(v.number("must be a number of bytes")),
  // Every option of an agent is a setting, but for those that belong to the configuration.
} satisfies Record<keyof ConfiguredAgent, v.GenericSchema>;

const { model, instructions, settings, limits } = agentConfigSchema.entries;
/** The options of an agent that JSON can express. */
const jsonAgentFields = { name: text, model, instructions, settings, limits };

const portRange = "must be an integer from 0 to 65535";
const port = v.pipe(v.number(portRange), v.integer(portRange), v.minValue(0, portRange), v.maxValue(65_535, portRange));
const sharedFields = {
  token: text,
  prefix: text,
  hosts: texts,
  origins: texts,
  limits: object,
  allowConfig: texts,
  compress: v.optional(v.boolean("must be true or false")),
  allowRecursiveDelete: v.optional(v.boolean("must be true or false")),
  audit: v.optional(
    v.custom((value) => value === false || (typeof value === "object" && value !== null), "must be an object or false"),
  ),
  questions: v.optional(v.picklist(["wait", "park"], 'must be "wait" or "park"')),
  studio: v.optional(
    v.custom(
      (value) => typeof value === "boolean" || (typeof value === "object" && value !== null),
      "must be a boolean or { path }",
    ),
  ),
  host: text,
  port: v.optional(port),
};
const agents = v.custom<object>(
  (value) => typeof value === "object" && value !== null,
  "must be an object of agents by id",
);
const fields = {
  ...sharedFields,
  agents: v.optional(agents),
  resolveAgent: v.optional(v.custom(isFunction, "must be a function from an id to an agent's options")),
  defaultAgent: any,
  events: v.optional(v.array(v.any(), "is a list of events made by defineEvent")),
  store: v.optional(
    v.custom(
      (value) => typeof value === "string" || (typeof value === "object" && value !== null),
      "must be a store or a URL",
    ),
  ),
  auth: v.optional(v.custom(isFunction, "must be a function")),
  authorize: v.optional(v.custom(isFunction, "must be a function")),
  redact: redaction,
  definitions: object,
  assets: object,
  mounts: v.optional(v.array(v.any(), "must be an array")),
} satisfies Record<keyof BoughConfig, v.GenericSchema>;
const jsonFields = { ...sharedFields, agents: v.optional(agents), defaultAgent: any, store: text };

export async function checkConfig({ file, isJson, value }: LoadedFile): Promise<CheckedConfig> {
  const checked = check(isJson ? jsonFields : fields, value, { file, path: "" }) as BoughConfig;
  const { agents: given, defaultAgent, resolveAgent, ...rest } = checked;
  const hasOthers = defaultAgent !== undefined || resolveAgent !== undefined;
  if (given === undefined && !hasOthers) throw misuse(`${file}: agents is missing.`, { file, field: "agents" });
  const agents: Record<string, AgentOptions> = {};
  for (const [id, agent] of Object.entries(given ?? {})) {
    if (!v.safeParse(idSchema, id).success) throw misuse(`${file}: "${id}" is not a valid agent id.`);
    agents[id] = await checkAgent(`agents.${id}`, agent, { file, isJson });
  }
  if (Object.keys(agents).length === 0 && !hasOthers) {
    throw misuse(`${file}: agents is empty; at least one agent is required.`);
  }
  return {
    ...rest,
    agents,
    ...(resolveAgent && { resolveAgent }),
    ...(defaultAgent !== undefined && {
      defaultAgent: await checkAgent("defaultAgent", defaultAgent, { file, isJson }),
    }),
  };
}

async function checkAgent(path: string, given: unknown, { file, isJson }: { file: string; isJson: boolean }) {
  try {
    const made = typeof given === "function" ? await given() : given;
    const options = check(isJson ? jsonAgentFields : agentFields, made, { file, path }) as ConfiguredAgent;
    // So that a mistake is reported now, not at the first run.
    await resolveModel(options.model);
    await createAgent(options).close();
    return options;
  } catch (error) {
    const { message } = error as Error;
    if (message.startsWith(`${file}: `)) throw error;
    const code = BoughError.is(error) ? error.code : "invalid_argument";
    throw new BoughError(code, `${file}: ${path}: ${message}`, { data: { file, field: path }, cause: error });
  }
}

function check(entries: v.ObjectEntries, value: unknown, { file, path }: { file: string; path: string }): unknown {
  const where = path === "" ? "" : `${path}.`;
  if (typeof value !== "object" || value === null) {
    throw misuse(`${file}: ${path === "" ? "the configuration" : path} must be an object.`);
  }
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(entries, key));
  if (unknown !== undefined) {
    const known = Object.keys(entries).join(", ");
    throw misuse(`${file}: unknown setting ${where}${unknown}. Known settings: ${known}.`);
  }
  const result = v.safeParse(v.object(entries), value);
  if (result.success) return value;
  const [issue] = result.issues;
  const field = `${where}${v.getDotPath(issue) ?? ""}`;
  const isMissing = issue.received === "undefined";
  throw misuse(`${file}: ${field} ${isMissing ? "is missing" : sentence(issue.message)}.`, { file, field });
}

/** Our own messages say what a field must be; the library's describe what they received. */
function sentence(message: string): string {
  return message.startsWith("must ") ? message : `is invalid: ${message}`;
}
