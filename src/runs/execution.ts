// Executions: turns whose loop is the code of a workflow. What such a turn keeps of it is in its metadata.

import type { Json, JsonObject } from "../base/json.ts";

/** What a turn keeps of the workflow that it executes, in its metadata under `workflow`. */
export interface ExecutionStamp {
  readonly name: string;
  readonly version: number;
  readonly digest: string;
  readonly executionId: string;
  /** The input is JSON in the text of its message. */
  readonly input?: "json";
}

/** The execution that a turn is; undefined for any other turn. */
export function executionOf(metadata: JsonObject | undefined): ExecutionStamp | undefined {
  const stamp = metadata?.workflow as Partial<ExecutionStamp> | Json | undefined;
  const { name, version, digest, executionId } = Object(stamp) as Partial<ExecutionStamp>;
  const isStamp = typeof name === "string" && typeof version === "number" && typeof digest === "string";
  return isStamp && typeof executionId === "string" ? (stamp as unknown as ExecutionStamp) : undefined;
}
