// The flow object: what the code of a workflow asks for, as steps of an execution.

import { BoughError } from "../../base/errors.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { anything, checkOptions, fn, number, object, oneOf, optionTable, text } from "../../base/options.ts";
import { stepSkipped } from "../../events/drafts.ts";
import type { OwnEventDefinition } from "../../events/index.ts";
import type { SpawnableAgent } from "../../tools/index.ts";
import type {
  AgentNodeOptions,
  AskOptions,
  Flow,
  FlowBranches,
  MapOptions,
  StepContext,
  StepOptions,
  WaitOptions,
  Workflow,
} from "../port.ts";
import { type GraphEvent, showsLive } from "../show.ts";
import { isWorkflow } from "../workflow.ts";
import { runAgentNode } from "./agent-node.ts";
import { all, first, map } from "./branches.ts";
import { type Execution, never, Restart } from "./execution.ts";
import type { Places } from "./places.ts";
import { FlowScope, within } from "./scope.ts";
import { askFor, inputDigest, type StepOutcome, sleepUntil } from "./steps.ts";
import { needValue } from "./values.ts";
import { ask, checkTime, waitForSignal } from "./waits.ts";

const stepTable = optionTable<StepOptions>({
  key: text,
  effect: oneOf("retry", "once"),
  retry: object,
  timeoutMs: number,
  reconcile: fn,
  input: anything,
});
const agentTable = optionTable<AgentNodeOptions>({
  key: text,
  output: anything,
  conversation: oneOf("none", "shared", "perNode", "forkPerNode"),
  nodeId: text,
  instructions: text,
  retry: object,
  timeoutMs: number,
  limits: object,
  context: anything,
  metadata: object,
});
const askTable = optionTable<AskOptions>({
  kind: oneOf("permission", "clarification"),
  request: object,
  timeoutMs: number,
});
const waitTable = optionTable<WaitOptions>({ schema: anything, timeoutMs: number, signal: text });
const mapTable = optionTable<MapOptions<unknown>>({ key: fn, parallel: number });

interface FlowParts {
  readonly execution: Execution;
  readonly places: Places;
  readonly workflow: Workflow;
  readonly version: number;
  /** Whether it is that of the execution, and not one in it. */
  readonly isOutermost: boolean;
}

export class CodeFlow implements Flow {
  readonly workflowName: string;
  readonly executionId: string;
  readonly version: number;
  readonly #parts: FlowParts;
  readonly #execution: Execution;

  constructor(parts: FlowParts) {
    this.#parts = parts;
    this.#execution = parts.execution;
    this.workflowName = parts.workflow.name;
    this.executionId = parts.execution.stamp.executionId;
    this.version = parts.version;
  }

  get signal(): AbortSignal {
    return this.#execution.scope.signal;
  }

  step<Output>(
    name: string,
    run: (context: StepContext) => Output | Promise<Output>,
    options: StepOptions<Output> = {},
  ): Promise<Output> {
    return this.#ask(name, options.key, (key) => {
      checkOptions(`The options of the step "${key}"`, options, stepTable);
      if (typeof run !== "function") throw misused(`The step "${key}" needs a function.`, key);
      checkRetry(options.retry, key);
      checkTime(options.timeoutMs, "timeoutMs");
      const execution = this.#execution;
      const { effect, retry, timeoutMs, reconcile } = options;
      const { executionId } = this;
      const stepId = `${execution.turn.turnId}/${key}`;
      const contextOf = (attempt: number, signal: AbortSignal) => ({ executionId, stepId, key, attempt, signal });
      const input = inputDigest(key, options);
      return askFor({
        execution,
        key,
        kind: "step",
        retry,
        timeoutMs,
        isOnce: effect === "once",
        ...(input !== undefined && { input }),
        reconcile:
          reconcile &&
          (async (tries) => {
            const found = await reconcile(contextOf(tries, execution.scope.signal));
            return typeof found === "object" ? ({ value: found.output } as StepOutcome) : found;
          }),
        run: async ({ attempt, signal }) => ({ value: await run(contextOf(attempt, signal)) }),
      }) as Promise<Output>;
    });
  }

  agent(name: string, agent: SpawnableAgent, input: unknown, options: AgentNodeOptions = {}): Promise<never> {
    return this.#ask(name, options.key, (key) => {
      checkOptions(`The options of the agent "${key}"`, options, agentTable);
      checkRetry(options.retry, key);
      checkTime(options.timeoutMs, "timeoutMs");
      const { execution, places, workflow } = this.#parts;
      const policy = options.conversation ?? workflow.options.conversation ?? "none";
      return runAgentNode({ execution, places, key, name, agent, input, policy, options }) as Promise<never>;
    });
  }

  workflow<Input, Output>(name: string, workflow: Workflow<Input, Output>, input: Input): Promise<Output> {
    return this.#ask(name, undefined, (key) => {
      if (!isWorkflow(workflow))
        throw misused(`The step "${key}" needs a workflow made by workflow() or graph().`, key);
      const execution = this.#execution;
      const { scope } = execution;
      const { version = 1, input: takes, output: gives } = workflow.options;
      const flow = new CodeFlow({ ...this.#parts, workflow: workflow as Workflow, version, isOutermost: false });
      execution.cover(`${key}/`);
      const inner = new FlowScope(`${key}/`, scope.signal);
      const run = async () => {
        const given = await needValue(takes, input, { code: "invalid_argument", what: `The input of "${key}"` });
        const made = await within(execution, inner, async () => workflow.run(flow, given as Input));
        return { value: await needValue(gives, made, { code: "output_invalid", what: `The output of "${key}"` }) };
      };
      const plan = {
        execution,
        key,
        kind: "flow" as const,
        isWhole: true,
        retry: undefined,
        timeoutMs: undefined,
        run,
      };
      return askFor(plan) as Promise<Output>;
    });
  }

  all(...given: [FlowBranches] | [string, FlowBranches]): Promise<never> {
    const [name, branches] = given.length === 1 ? ["all", given[0]] : given;
    return this.#in(() => all(this.#execution, name, branches)) as Promise<never>;
  }

  any(name: string, branches: FlowBranches): Promise<never> {
    return this.#in(() => first(this.#execution, { name, mode: "any" }, branches)) as Promise<never>;
  }

  race(name: string, branches: FlowBranches): Promise<never> {
    return this.#in(() => first(this.#execution, { name, mode: "race" }, branches)) as Promise<never>;
  }

  map<Item, Output>(
    name: string,
    items: Iterable<Item>,
    code: (item: Item, index: number) => Output | Promise<Output>,
    options: MapOptions<Item> = {},
  ): Promise<Awaited<Output>[]> {
    return this.#in(() => {
      checkOptions(`The options of the map "${name}"`, options, mapTable);
      if (typeof code !== "function") throw misused(`The map "${name}" needs a function.`, name);
      if (typeof items?.[Symbol.iterator] !== "function")
        throw misused(`The map "${name}" needs a list of items.`, name);
      const { parallel = this.#parts.workflow.options.parallel ?? 8 } = options;
      if (!(Number.isInteger(parallel) && parallel >= 1)) throw misused("parallel must be an integer ≥ 1.", name);
      return map(this.#execution, name, items, { ...options, parallel, code });
    }) as Promise<Awaited<Output>[]>;
  }

  ask(name: string, options: AskOptions = {}): Promise<JsonObject> {
    return this.#ask(name, undefined, (key) => {
      checkOptions(`The options of the question "${key}"`, options, askTable);
      return ask(this.#execution, key, name, options);
    });
  }

  wait(name: string, options: WaitOptions = {}): Promise<never> {
    return this.#ask(name, undefined, (key) => {
      checkOptions(`The options of the wait "${key}"`, options, waitTable);
      return waitForSignal(this.#execution, key, { signal: name, ...options }) as Promise<never>;
    });
  }

  sleep(name: string, ms: number): Promise<void> {
    return this.#ask(name, undefined, (key) => {
      checkTime(ms ?? Number.NaN, `The time of the sleep "${key}"`);
      return sleepUntil(this.#execution, key, () => this.#now() + ms) as Promise<void>;
    });
  }

  until(name: string, time: number | Date): Promise<void> {
    return this.#ask(name, undefined, (key) => {
      const until = Number(time);
      if (!Number.isFinite(until)) throw misused(`The sleep "${key}" needs a date or milliseconds since 1970.`, key);
      return sleepUntil(this.#execution, key, () => until) as Promise<void>;
    });
  }

  now(name = "now"): Promise<number> {
    return this.#note(name, () => this.#now());
  }

  random(name = "random"): Promise<number> {
    return this.#note(name, () => this.#execution.turn.plan.random());
  }

  id(name = "id"): Promise<string> {
    return this.#note(name, () => this.#execution.turn.context.ids.next());
  }

  checkpoint(label?: string): Promise<string> {
    const save = () => this.#execution.turn.checkpoint({ source: "manual", ...(label !== undefined && { label }) });
    return this.#note(label ?? "checkpoint", save);
  }

  emit(event: string | OwnEventDefinition, data: unknown): Promise<void> {
    return this.#in(async () => {
      const { turn, scope } = this.#execution;
      // Events of a pass before this one are counted, and not emitted again.
      await turn.own.emit(event, data as Json, `step:${scope.path}emit`);
    });
  }

  restart(input: unknown): Promise<never> {
    return this.#in(() => {
      if (!this.#parts.isOutermost) throw noRestart();
      this.#execution.restart(new Restart(input));
      return never<never>();
    });
  }

  skip(name: string, why: string): Promise<void> {
    return this.#ask(name, undefined, (key) =>
      this.#execution.operate(key, async () => {
        const { turn, records } = this.#execution;
        if (records.isSkipped(key)) return;
        await turn.write(stepSkipped(turn.context, turn.turnId, { key, why: String(why) }));
      }),
    );
  }

  [showsLive](event: GraphEvent, after?: string): void {
    const { isLeft, turn, scope } = this.#execution;
    const path = after === undefined ? undefined : scope.path + after;
    if (!isLeft && !this.#execution.wasRecorded(path)) turn.emitter.live(event);
  }

  #now(): number {
    return this.#execution.turn.context.clock.now();
  }

  /** Execution-6. */
  #note<T>(name: string, make: () => T | Promise<T>): Promise<T> {
    return this.#ask(name, undefined, (key) => {
      const run = async () => ({ value: await make() });
      const plan = {
        execution: this.#execution,
        key,
        kind: "flow" as const,
        retry: undefined,
        timeoutMs: undefined,
        run,
      };
      return askFor(plan) as Promise<T>;
    });
  }

  /** With the key of a step that is asked for now; misuse rejects. */
  #ask<T>(name: string, explicit: string | undefined, ask: (key: string) => Promise<T>): Promise<T> {
    return this.#in(() => ask(this.#execution.scope.keyFor(name, explicit)));
  }

  #in<T>(code: () => Promise<T>): Promise<T> {
    try {
      return code();
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

function noRestart(): BoughError {
  return misused("Only the outermost workflow of an execution can restart it.", "restart");
}

function checkRetry(retry: StepOptions["retry"], key: string): void {
  if (retry === undefined) return;
  const { attempts, delayMs = 0, factor = 1 } = retry;
  if (!(Number.isInteger(attempts) && attempts >= 1)) throw misused("retry.attempts must be an integer ≥ 1.", key);
  if (!(delayMs >= 0 && factor > 0)) throw misused("retry.delayMs and retry.factor must be numbers above 0.", key);
}

function misused(sentence: string, key: string): BoughError {
  return new BoughError("invalid_argument", sentence, { data: { key } });
}
