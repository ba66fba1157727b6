// Is a configuration what it should be? What is wrong is told with the file and the field.

import * as v from "valibot";
import { type AgentOptions, createAgent } from "../../agent/index.ts";
import { BoughError } from "../../base/errors.ts";
import { resolveModel } from "../../models/index.ts";
import type { BoughConfig, ConfiguredAgent } from "../../server/index.ts";
import { agentConfigSchema, idSchema } from "../../wire/index.ts";
import { misuse } from "../command.ts";
import type { LoadedFile } from "./load.ts";

/** A configuration whose agents are there. */
export interface CheckedConfig extends Omit<BoughConfig, "agents"> {
  readonly agents: Readonly<Record<string, AgentOptions>>;
}

const any = v.optional(v.any());
const text = v.optional(v.string("is a text"));
const texts = v.optional(v.array(v.string("is a text"), "is a list of texts"));
const object = v.optional(v.custom<object>((value) => typeof value === "object" && value !== null, "is an object"));
const isFunction = (value: unknown) => typeof value === "function";
const redaction = v.optional(
  v.custom((value) => value === false || isFunction(value), "is a function from a text to a text, or false"),
);

const agentFields = {
  name: text,
  model: v.custom(
    (value) => (typeof value === "string" && value !== "") || (typeof value === "object" && value !== null),
    'is an AI SDK model or "provider/model"',
  ),
  instructions: text,
  tools: object,
  durable: object,
  middleware: v.optional(v.array(v.any(), "is a list")),
  limits: object,
  permissions: object,
  retry: object,
  redact: redaction,
  settings: object,
  telemetry: any,
  leaseMs: v.optional(v.number("is a number of milliseconds")),
  logger: object,
  clock: object,
  ids: object,
  random: any,
  owner: text,
};

const { model, instructions, settings, limits } = agentConfigSchema.entries;
/** What JSON can say of an agent. */
const jsonAgentFields = { name: text, model, instructions, settings, limits };

const port = v.pipe(v.number("is a number"), v.integer("is a whole number"), v.minValue(0), v.maxValue(65_535));
const sharedFields = {
  token: text,
  prefix: text,
  hosts: texts,
  origins: texts,
  limits: object,
  allowRecursiveDelete: v.optional(v.boolean("is true or false")),
  audit: v.optional(
    v.custom((value) => value === false || (typeof value === "object" && value !== null), "is an object or false"),
  ),
  questions: v.optional(v.picklist(["wait", "park"], 'is "wait" or "park"')),
  host: text,
  port: v.optional(port),
};
const fields = {
  ...sharedFields,
  agents: v.custom<object>((value) => typeof value === "object" && value !== null, "is an object of agents by id"),
  store: v.optional(
    v.custom(
      (value) => typeof value === "string" || (typeof value === "object" && value !== null),
      "is a store or URL",
    ),
  ),
  auth: v.optional(v.custom(isFunction, "is a function")),
  authorize: v.optional(v.custom(isFunction, "is a function")),
  redact: redaction,
  definitions: object,
};
const jsonFields = { ...sharedFields, agents: fields.agents, store: text };

export async function checkConfig({ file, isJson, value }: LoadedFile): Promise<CheckedConfig> {
  const checked = check(isJson ? jsonFields : fields, value, { file, path: "" }) as BoughConfig;
  const agents: Record<string, AgentOptions> = {};
  for (const [id, given] of Object.entries(checked.agents)) {
    agents[id] = await checkAgent(id, given, { file, isJson });
  }
  if (Object.keys(agents).length === 0) throw misuse(`${file}: agents has none; a server needs one at least.`);
  return { ...checked, agents };
}

async function checkAgent(id: string, given: unknown, { file, isJson }: { file: string; isJson: boolean }) {
  const path = `agents.${id}`;
  if (!v.safeParse(idSchema, id).success) throw misuse(`${file}: "${id}" can't be the id of an agent.`);
  try {
    const made = typeof given === "function" ? await given() : given;
    const options = check(isJson ? jsonAgentFields : agentFields, made, { file, path }) as ConfiguredAgent;
    // What is wrong with it is said now, and not at the first run.
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
    throw misuse(`${file}: ${path === "" ? "the configuration" : path} is an object.`);
  }
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(entries, key));
  if (unknown !== undefined) {
    const known = Object.keys(entries).join(", ");
    throw misuse(`${file}: there is no setting ${where}${unknown}; there are ${known}.`);
  }
  const result = v.safeParse(v.object(entries), value);
  if (result.success) return value;
  const [issue] = result.issues;
  const field = `${where}${v.getDotPath(issue) ?? ""}`;
  const isMissing = issue.received === "undefined";
  throw misuse(`${file}: ${field} ${isMissing ? "is missing" : sentence(issue.message)}.`, { file, field });
}

/** Our own messages say what a field is; the library's speak of what they received. */
function sentence(message: string): string {
  return message.startsWith("is ") ? message : `is not right: ${message}`;
}
