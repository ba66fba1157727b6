// Graphs of workflows over HTTP: as JSON, as Mermaid, and with the states of an execution.

import type { Agent } from "../agent/index.ts";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Tenant } from "./tenant.ts";

export interface GraphQuery {
  readonly format?: "json" | "mermaid" | undefined;
  readonly sessionId?: string | undefined;
  readonly branchId?: string | undefined;
}

/** What a workflow's graph looks like; a workflow that is code is drawn by an execution of it. */
export async function graphAnswer(
  { agents, sessions }: Pick<Tenant, "agents" | "sessions">,
  agentId: string,
  { format = "json", sessionId, branchId = "main" }: GraphQuery,
): Promise<JsonObject | Response> {
  const workflow = workflowOf(await agents.get(agentId));
  if (!workflow) throw refused(`Agent "${agentId}" is no workflow, so it has no graph.`);
  const { drawSteps, executionSteps, isGraph } = await import("../workflows/index.ts");
  const steps = sessionId === undefined ? undefined : await executionSteps(sessions, { sessionId, branchId });
  if (isGraph(workflow)) {
    if (format === "json")
      return { graph: workflow.toJSON(), ...(steps && { steps: steps as unknown as JsonObject[] }) };
    return text(workflow.toMermaid(steps && { execution: steps }));
  }
  if (!steps) throw refused(`The workflow "${agentId}" is code: name an execution by its \`sessionId\` to draw it.`);
  return format === "json" ? { steps: steps as unknown as JsonObject[] } : text(drawSteps(steps));
}

function workflowOf(agent: Agent) {
  return "workflow" in agent ? (agent as Agent & { workflow: object }).workflow : undefined;
}

function text(drawn: string): Response {
  return new Response(drawn, { headers: { "content-type": "text/vnd.mermaid; charset=utf-8" } });
}

function refused(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
