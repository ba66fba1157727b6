// Planning: the model keeps a list of steps. The plan belongs to the branch, so a fork takes it along. The model is shown it in
// a reminder: as a part of the instructions, each change would make the provider's prompt cache useless.

import * as v from "valibot";
import { addReminder } from "../../models/index.ts";
import { defineTool } from "../../tools/index.ts";
import { readsRequests } from "../pipeline.ts";
import type { Middleware } from "../port.ts";
import { defineState } from "../state.ts";
import { toolInput } from "./tool-input.ts";

const planSchema = v.array(v.object({ step: v.string(), status: v.picklist(["pending", "in_progress", "completed"]) }));

/** One step of a plan. */
export type PlanStep = v.InferOutput<typeof planSchema>[number];

/** The state handle of a branch's plan; an empty list means no plan. */
export const planState = defineState({ key: "plan", scope: "branch", initial: [], schema: planSchema });

const updatePlan = defineTool({
  description:
    "Record the plan for the task: the complete list of steps, each with its status. Call it when you start a task with several steps and whenever a step changes. An empty list clears the plan.",
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
    return steps.length === 0 ? "Plan cleared." : `Plan saved: ${done} of ${steps.length} steps done.`;
  },
});

/** Adds the tool `update_plan`. Every model call sees the current plan; watchers get each change as `custom-emit` "plan". */
export function planning(): Middleware {
  return readsRequests({
    name: "planning",
    state: [planState],
    tools: { update_plan: updatePlan },
    async beforeIteration(context) {
      const steps = await context.state.get(planState);
      if (steps.length > 0) context.request = addReminder(context.request, planText(steps));
    },
  });
}

const marks = { pending: "[ ]", in_progress: "[>]", completed: "[x]" };

function planText(steps: readonly PlanStep[]): string {
  const lines = steps.map(({ step, status }) => `${marks[status]} ${step}`);
  return `The current plan ([x] done, [>] in progress; change it with update_plan):\n${lines.join("\n")}`;
}
