// A workflow as a function, checked when it is defined.

import { BoughError } from "../base/errors.ts";
import { checkOptions, flag, object, oneOf, optionTable, text } from "../base/options.ts";
import { sha256Hex } from "../base/sha256.ts";
import type { Flow, Workflow, WorkflowOptions } from "./port.ts";

const count = {
  fits: (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 1,
  wanted: "an integer ≥ 1",
};

const workflows = {
  fits: (value: unknown) => Array.isArray(value) && value.every(isWorkflow),
  wanted: "a list of workflows",
};

const schema = {
  fits: (value: unknown) => (typeof value === "object" || typeof value === "function") && value !== null,
  wanted: "a schema",
};

const policies = ["none", "shared", "perNode", "forkPerNode"] as const;

const optionsTable = optionTable<WorkflowOptions>({
  description: text,
  input: schema,
  output: schema,
  version: count,
  conversation: oneOf(...policies),
  parallel: count,
  strict: flag,
  onChange: oneOf("continue", "pin", "fail", "ask"),
  versions: workflows,
});

type Code<Input, Output> = (flow: Flow, input: Input) => Output | Promise<Output>;

/**
 * Defines a workflow: a function of named, durable steps.
 *
 * @example
 * const review = workflow("review", async (flow, draft: { text: string }) => {
 *   const facts = await flow.agent("research", researcher, draft.text);
 *   const { approved } = await flow.ask("publish", { request: { facts: facts.text } });
 *   if (approved) await flow.step("publish", () => publish(draft));
 *   return { approved };
 * });
 */
export function workflow<Input = unknown, Output = unknown>(
  name: string,
  run: Code<Input, Output>,
): Workflow<Input, Output>;
export function workflow<Input = unknown, Output = unknown>(
  name: string,
  options: WorkflowOptions<Input, Output>,
  run: Code<Input, Output>,
): Workflow<Input, Output>;
export function workflow(
  name: string,
  given: WorkflowOptions | Code<unknown, unknown>,
  code?: Code<unknown, unknown>,
): Workflow {
  const [options, run] = typeof given === "function" ? [{}, given] : [given, code];
  if (typeof run !== "function") {
    throw new BoughError(
      "invalid_argument",
      "A workflow needs a function: workflow(name, options, async (flow, input) => …).",
    );
  }
  checkWorkflow(name, options);
  const { version = 1 } = options;
  return Object.freeze({ name, options, digest: sha256Hex(JSON.stringify([name, version])), run });
}

/** Refuses a name that ids and routes can't carry, and options that are none. */
export function checkWorkflow(name: unknown, options: WorkflowOptions): void {
  if (typeof name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name)) {
    const sentence = "A workflow's name must have 1 to 64 letters, digits, - or _, and begin with a letter or a digit.";
    throw new BoughError("invalid_argument", sentence);
  }
  if (!object.fits(options)) throw new BoughError("invalid_argument", "The options of a workflow must be an object.");
  checkOptions(`The options of the workflow "${name}"`, options, optionsTable);
}

/** Whether it is what `workflow` or `graph` made. */
export function isWorkflow(value: unknown): value is Workflow {
  const { name, digest, run } = Object(value) as Partial<Workflow>;
  return typeof name === "string" && typeof digest === "string" && typeof run === "function";
}
