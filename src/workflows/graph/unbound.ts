// A graph of JSON alone, to be read and drawn: what stands in it by name is not there, and it can't run.

import { isObject } from "../../base/options.ts";
import { workflow } from "../workflow.ts";
import { isNamed } from "./condition.ts";
import { type Graph, graph } from "./graph.ts";

export function readUnbound(json: unknown): Graph {
  const functions: Record<string, (() => never) | RegExp> = Object.create(null);
  const workflows: Record<string, ReturnType<typeof workflow>> = Object.create(null);
  const look = (value: unknown, key: string): void => {
    if (isNamed(value)) functions[value.function] = key === "matches" ? /(?!)/ : missing;
    else if (key === "workflow" && typeof value === "string") workflows[value] ??= workflow("missing", missing);
    else if (Array.isArray(value)) for (const each of value) look(each, key);
    else if (isObject(value)) for (const [name, each] of Object.entries(value)) look(each, name);
  };
  look(json, "");
  return graph.fromJSON(json, { functions: { ...functions }, workflows: { ...workflows } });
}

function missing(): never {
  throw new Error("This graph was read to be drawn, not to run.");
}
