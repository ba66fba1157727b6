// Bindings: the names that JSON has for what is no data (functions, patterns, agents, workflows).
//   Bindings-1. Code that is given without a name is named by its place, so a graph's JSON and its tables fit each other.
//   Bindings-2. A name means one thing in a graph.

import { isObject } from "../../base/options.ts";
import type { SpawnableAgent } from "../../tools/index.ts";
import type { Workflow } from "../port.ts";
import { isWorkflow } from "../workflow.ts";
import { isNamed } from "./condition.ts";
import type { GraphBindings } from "./definition.ts";
import type { Named } from "./named.ts";
import { type Place, refuse } from "./refuse.ts";

type Table = "agents" | "functions" | "workflows";

export class Bindings {
  readonly #given: GraphBindings;
  readonly #used = {
    agents: new Map<string, unknown>(),
    functions: new Map<string, unknown>(),
    workflows: new Map<string, unknown>(),
  };

  constructor(given: GraphBindings) {
    this.#given = given;
  }

  /** A function, or the one that a name stands for; `name` is its place (Bindings-1). */
  code<Code>(given: unknown, name: string, place: Place): Named<Code> {
    if (typeof given === "function") return { name: this.#use("functions", name, given, place), code: given as Code };
    if (!isNamed(given)) throw refuse(place, "it must be a function");
    const found = this.#find("functions", given.function);
    if (typeof found !== "function") throw missing(place, "function", given.function, "functions");
    return { name: this.#use("functions", given.function, found, place), code: found as Code };
  }

  /** A pattern: a RegExp of the program, or the one that a name stands for. */
  pattern(given: unknown, name: string, place: Place): Named<RegExp> {
    if (given instanceof RegExp) return { name: this.#use("functions", name, given, place), code: given };
    if (!isNamed(given)) {
      throw refuse(place, '"matches" in its condition must be a RegExp given in code; JSON has it by its name');
    }
    const found = this.#find("functions", given.function);
    if (!(found instanceof RegExp)) throw missing(place, "pattern", given.function, "functions");
    return { name: this.#use("functions", given.function, found, place), code: found };
  }

  /** An agent; a text is one of `agents`, or the id of a stored one. */
  agent(given: unknown, nodeId: string, place: Place): Named<SpawnableAgent> {
    if (typeof given === "string" && given !== "") {
      const found = (this.#find("agents", given) ?? given) as SpawnableAgent;
      return { name: this.#use("agents", given, found, place), code: found };
    }
    if (!isObject(given))
      throw refuse(place, "its agent must be an agent made by createAgent, or the id of a stored one");
    const { id, name } = given as { id?: unknown; name?: unknown };
    const own = [id, name].find((each): each is string => typeof each === "string" && each !== "") ?? nodeId;
    const isTaken = (this.#used.agents.get(own) ?? given) !== given;
    return { name: this.#use("agents", isTaken ? nodeId : own, given, place), code: given };
  }

  workflow(given: unknown, place: Place): Named<Workflow> {
    const found = typeof given === "string" ? this.#find("workflows", given) : given;
    if (typeof given === "string" && !isWorkflow(found)) throw missing(place, "workflow", given, "workflows");
    if (!isWorkflow(found)) throw refuse(place, "its workflow must be made by workflow() or graph()");
    const name = typeof given === "string" ? given : found.name;
    return { name: this.#use("workflows", name, found, place), code: found };
  }

  /** What names stand for in this graph; ids of stored agents are left out. */
  used(): Required<GraphBindings> {
    const table = (name: Table) =>
      Object.fromEntries([...this.#used[name]].filter(([, each]) => typeof each !== "string"));
    return {
      agents: table("agents"),
      functions: table("functions"),
      workflows: table("workflows"),
    } as Required<GraphBindings>;
  }

  #find(table: Table, name: string): unknown {
    const given = this.#given[table];
    return given && Object.hasOwn(given, name) ? given[name] : undefined;
  }

  /** Bindings-2. */
  #use(table: Table, name: string, value: unknown, place: Place): string {
    const known = this.#used[table].get(name);
    if (known !== undefined && known !== value) {
      throw refuse(place, `the name "${name}" stands for something else in \`${table}\`; give it another one`);
    }
    this.#used[table].set(name, value);
    return name;
  }
}

function missing(place: Place, what: string, name: string, table: Table) {
  return refuse(place, `it needs the ${what} "${name.slice(0, 64)}", which \`${table}\` does not have`);
}
