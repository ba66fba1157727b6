import type { AgentOptions, defineTool, RunOptions } from "../../../src/index.ts";
import type { scriptedModel } from "../../../src/scripted/index.ts";

export function requests(z: unknown): Record<string, RunOptions>;
export const httpRequests: Record<string, object>;
export function agentOptions(
  kit: { defineTool: typeof defineTool; scriptedModel: typeof scriptedModel; z: unknown },
  callsPath: string,
): AgentOptions & Required<Pick<AgentOptions, "logger">>;
