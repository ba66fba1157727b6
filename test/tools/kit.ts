import type { Clock } from "../../src/base/clock.ts";
import type { Json } from "../../src/base/json.ts";
import { type AnyTool, prepareTools, type Tool, type ToolContext } from "../../src/tools/index.ts";

/** A context whose doors lead nowhere, and what went through them. */
export function contextFor(
  changes: Partial<ToolContext> = {},
): ToolContext & { shown: Json[]; emitted: [string, Json][] } {
  const shown: Json[] = [];
  const emitted: [string, Json][] = [];
  const nowhere = () => Promise.reject(new Error("not here"));
  return {
    sessionId: "s",
    branchId: "main",
    turnId: "turn",
    runId: "run",
    context: undefined,
    identity: {},
    metadata: {},
    sessionMetadata: async () => ({}),
    signal: new AbortController().signal,
    callId: "call-1",
    toolName: "probe",
    attempt: 1,
    messages: [],
    state: { get: nowhere, set: nowhere, update: nowhere },
    emit: ((name: string, data: Json) => void emitted.push([name, data])) as ToolContext["emit"],
    progress: (output) => void shown.push(output),
    ask: async (question) => `answer to ${question}`,
    checkpoint: nowhere,
    background: nowhere,
    spawn: nowhere,
    tasks: { list: nowhere, check: nowhere, message: nowhere, cancel: nowhere },
    attach: nowhere,
    content: { get: nowhere, text: nowhere },
    ...changes,
    shown,
    emitted,
  };
}

export async function prepared(tool: AnyTool): Promise<Tool> {
  return (await prepareTools([{ probe: tool }])).get("probe")!;
}

/** Waits that take no time; each is written down. */
export function hastyClock(): Clock & { slept: number[] } {
  const slept: number[] = [];
  return {
    slept,
    now: () => 0,
    sleep: async (ms) => void slept.push(ms),
  };
}
