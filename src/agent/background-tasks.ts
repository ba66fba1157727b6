// The tools with which a model looks after its background tasks.

import { defineTool } from "../tools/index.ts";

const taskId = { type: "string", description: "The id that the task was started with." } as const;

interface Asked {
  readonly taskId: string;
}

function inputOf<Given>(properties: object, required: readonly string[]) {
  const jsonSchema = { type: "object", properties, required, additionalProperties: false };
  const validate = (value: unknown) => {
    const missing = required.find((name) => typeof Object(value)[name] !== "string");
    if (missing === undefined) return { success: true as const, value: value as Given };
    return { success: false as const, error: new Error(`${missing} must be a text.`) };
  };
  return { jsonSchema, validate };
}

/**
 * Tools for background tasks: `check_task`, `message_task` and `cancel_task`.
 *
 * @example
 * const agent = createAgent({
 *   model,
 *   tools: { review: subagent(reviewer, { description: "Reviews.", mode: "background" }), ...backgroundTasks() },
 * });
 */
export function backgroundTasks() {
  return {
    check_task: defineTool({
      description: "Tells how far a background task is, or its result. Without taskId: lists the tasks that go on.",
      input: inputOf<Partial<Asked> & { from?: number }>(
        {
          taskId,
          from: {
            type: "integer",
            minimum: 0,
            description: "Where to go on in a long text: the `next` of the last look.",
          },
        },
        [],
      ),
      effect: "read",
      async execute({ taskId, from }, { tasks }) {
        if (taskId === undefined) return { tasks: await tasks.list() };
        return tasks.check(taskId, typeof from === "number" ? { from } : {});
      },
    }),
    message_task: defineTool({
      description: "Says something to a background task that goes on. Its agent reads it before its next step.",
      input: inputOf<Asked & { message: string }>({ taskId, message: { type: "string" } }, ["taskId", "message"]),
      async execute({ taskId, message }, { tasks }) {
        await tasks.message(taskId, message);
        return "The task is told.";
      },
    }),
    cancel_task: defineTool({
      description: "Ends a background task.",
      input: inputOf<Asked>({ taskId }, ["taskId"]),
      async execute({ taskId }, { tasks }) {
        await tasks.cancel(taskId);
        return "The task is cancelled.";
      },
    }),
  };
}
