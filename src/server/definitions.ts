// Definitions: agents that clients stored. Each is the row of a session in a separate namespace, so that every
// store supports them and every node sees them; the row's version shows whether a built agent is up to date.

import { utf8Length } from "../base/bytes.ts";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { type ModelChoice, resolveModel } from "../models/index.ts";
import type { Session, Sessions } from "../sessions/index.ts";
import type { ToolSet } from "../tools/index.ts";
import type { AgentBody, AgentConfig, AgentSummary } from "../wire/index.ts";
import type { Graph } from "../workflows/index.ts";
import type { ServerOptions } from "./options.ts";
import { Refusal } from "./refusal.ts";

export interface Definition extends AgentBody {
  readonly version: number;
}

/** What is stored: the configuration of an agent, or a graph. */
export interface Defined {
  readonly config?: AgentConfig | undefined;
  readonly graph?: JsonObject | undefined;
}

/** The content of a definition. */
export interface NewDefinition extends Defined {
  readonly agentId?: string | undefined;
  readonly name?: string | undefined;
  readonly metadata?: JsonObject | undefined;
}

/** A row holds 64 KB; a graph is a text in it, because it may be nested more deeply than a row. */
const graphBytes = 60_000;

type Allowed = NonNullable<ServerOptions["definitions"]>;

export class Definitions {
  readonly #rows: Sessions;
  readonly #allowed: Allowed;
  readonly #now: () => number;

  constructor(options: { rows: Sessions; allowed: Allowed; now: () => number }) {
    this.#rows = options.rows;
    this.#allowed = options.allowed;
    this.#now = options.now;
  }

  async create({ agentId, name, metadata, ...defined }: NewDefinition): Promise<Definition> {
    const state = {
      ...(await this.#stateOf(defined)),
      updatedAt: this.#now(),
      ...(name !== undefined && { name }),
      ...(metadata && { metadata }),
    };
    try {
      return describe(await this.#rows.createSession(agentId, { state }));
    } catch (error) {
      if (BoughError.is(error, "session_exists")) throw agentExists(agentId!);
      throw error;
    }
  }

  async find(agentId: string): Promise<Definition | undefined> {
    try {
      return describe(await this.#rows.getSession(agentId));
    } catch (error) {
      if (BoughError.is(error, "session_not_found")) return undefined;
      throw error;
    }
  }

  async list(): Promise<AgentSummary[]> {
    const found: AgentSummary[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#rows.listSessions({ limit: 500, ...(cursor !== undefined && { cursor }) });
      found.push(...page.sessions.map((row) => summaryOf(describe(row))));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  async update(agentId: string, defined: Defined): Promise<Definition> {
    const state = { ...(await this.#stateOf(defined)), updatedAt: this.#now() };
    return describe(await this.#rows.updateSession(agentId, { state }).catch(notFound(agentId)));
  }

  async delete(agentId: string): Promise<void> {
    await this.#rows.deleteSession(agentId).catch(notFound(agentId));
  }

  /** Resolves a model by its name. */
  model(name: string): ModelChoice {
    const { models } = this.#allowed;
    if (!models) return name;
    if (!Object.hasOwn(models, name))
      throw new BoughError("invalid_argument", "The server does not offer this model to stored agents.");
    return models[name]!;
  }

  /** Resolves tools by their names. */
  tools(names: readonly string[] = []): ToolSet {
    const { tools = {} } = this.#allowed;
    const unknown = names.find((name) => !Object.hasOwn(tools, name));
    if (unknown !== undefined)
      throw new BoughError("invalid_argument", "The server does not offer this tool to stored agents.");
    return Object.fromEntries(names.map((name) => [name, (tools as Record<string, ToolSet[string]>)[name]!]));
  }

  /** The graph of a definition, with what the server lets it use. */
  async graph(json: JsonObject): Promise<Graph> {
    const { functions = {}, workflows = {} } = this.#allowed;
    const { graph } = await import("../workflows/index.ts");
    return graph.fromJSON(json, { functions, workflows });
  }

  /** What a row keeps; refuses a definition that could never run. */
  async #stateOf({ config, graph }: Defined): Promise<JsonObject> {
    if ((config === undefined) === (graph === undefined)) {
      throw new BoughError("invalid_argument", "A definition has either `config`, of an agent, or `graph`.");
    }
    if (config) {
      await this.#check(config);
      return { config: config as JsonObject, graph: null };
    }
    await this.graph(graph!);
    const text = JSON.stringify(graph);
    if (utf8Length(text) > graphBytes) {
      throw new BoughError("limit_exceeded", `A stored graph can't be larger than ${graphBytes} bytes.`, {
        data: { limit: graphBytes },
      });
    }
    return { graph: text, config: null };
  }

  async #check(config: AgentConfig): Promise<void> {
    this.tools(config.tools);
    try {
      await resolveModel(this.model(config.model));
    } catch {
      throw new BoughError("invalid_argument", "The server can't use this model.");
    }
  }
}

function describe({ id, createdAt, version, state }: Session): Definition {
  const { config, graph, name, updatedAt, metadata } = state as JsonObject & {
    config?: AgentConfig;
    metadata?: JsonObject;
  };
  return {
    id,
    source: "stored",
    createdAt,
    version,
    ...(config && { config }),
    ...(typeof graph === "string" && { kind: "workflow" as const, graph: JSON.parse(graph) as JsonObject }),
    ...(typeof updatedAt === "number" && { updatedAt }),
    ...(typeof name === "string" && { name }),
    ...(metadata && { metadata }),
  };
}

function summaryOf({ config: _config, graph: _graph, version: _version, ...summary }: Definition): AgentSummary {
  return summary;
}

export function definitionBody({ version: _version, ...body }: Definition): AgentBody {
  return body;
}

export function agentExists(agentId: string): Refusal {
  return new Refusal("agent_exists", `Agent "${agentId}" already exists.`, { agentId });
}

export function agentNotFound(agentId: string): Refusal {
  return new Refusal("agent_not_found", `There is no agent "${agentId}".`, { agentId });
}

function notFound(agentId: string) {
  return (error: unknown): never => {
    throw BoughError.is(error, "session_not_found") ? agentNotFound(agentId) : error;
  };
}
