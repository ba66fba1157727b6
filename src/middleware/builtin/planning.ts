// Planning: the model keeps a list of steps. The plan belongs to the branch, so a fork takes it along.

import * as v from "valibot";
import type { ModelRequest } from "../../models/index.ts";
import { defineTool } from "../../tools/index.ts";
import { readsRequests } from "../pipeline.ts";
import type { Middleware } from "../port.ts";
import { defineState } from "../state.ts";
import { toolInput } from "./tool-input.ts";

const planSchema = v.array(v.object({ step: v.string(), status: v.picklist(["pending", "in_progress", "completed"]) }));

/** One step of a plan. */
export type PlanStep = v.InferOutput<typeof planSchema>[number];

/** The plan of a branch; an empty list is none. */
export const planState = defineState({ key: "plan", scope: "branch", initial: [], schema: planSchema });

const updatePlan = defineTool({
  description:
    "Write down the plan for the task: the whole list of steps, each with its status. Call it when you begin a task of several steps and whenever a step changes; an empty list clears the plan.",
  input: toolInput(v.object({ steps: planSchema }), {
    type: "object",
    properties: {
      steps: {
        type: "array",
        items: {
          type: "object",
          properties: {
            step: { type: "string" },
            status: { type: "string", enum: ["pending", "in_progress", "completed"] },
          },
          required: ["step", "status"],
          additionalProperties: false,
        },
      },
    },
    required: ["steps"],
    additionalProperties: false,
  }),
  async execute({ steps }, context) {
    await context.state.set(planState, steps);
    context.emit("plan", { steps });
    const done = steps.filter(({ status }) => status === "completed").length;
    return steps.length === 0
      ? "The plan is cleared."
      : `The plan is noted: ${done} of ${steps.length} steps are done.`;
  },
});

/** Brings the tool `update_plan`; every model call is shown the plan as it stands, and watchers get it as "plan". */
export function planning(): Middleware {
  return readsRequests({
    name: "planning",
    state: [planState],
    tools: { update_plan: updatePlan },
    async beforeIteration(context) {
      const steps = await context.state.get(planState);
      if (steps.length > 0) context.request = withInstruction(context.request, planText(steps));
    },
  });
}

const marks = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

function planText(steps: readonly PlanStep[]): string {
  const lines = steps.map(({ step, status }) => `${marks[status]} ${step}`);
  return `The current plan ([x] done, [>] in progress; change it with update_plan):\n${lines.join("\n")}`;
}

/** A provider wants one system message at most, so an existing one grows. */
function withInstruction(request: ModelRequest, text: string): ModelRequest {
  const [first, ...conversation] = request.prompt;
  if (first?.role === "system" && typeof first.content === "string") {
    return { ...request, prompt: [{ ...first, content: `${first.content}\n\n${text}` }, ...conversation] };
  }
  return { ...request, prompt: [{ role: "system", content: text }, ...request.prompt] };
}
