// A flow in memory, for graphs without a store: it records steps, forgets nothing, and can crash before any record. Its agents are
// functions by name.

import { BoughError, type Json, type JsonObject } from "../../src/index.ts";
import type {
  AgentNodeOptions,
  AskOptions,
  Flow,
  StepContext,
  StepOptions,
  Workflow,
} from "../../src/workflows/port.ts";
import { type GraphEvent, showsLive } from "../../src/workflows/show.ts";

// biome-ignore lint/suspicious/noExplicitAny: workflows of every type are run here
type AnyWorkflow = Workflow<any, any>;
type Recorded = { readonly output: unknown } | { readonly error: unknown };
export type AgentCode = (input: unknown, options: AgentNodeOptions) => unknown;

/** What an execution has left behind; another flow goes on with it. */
export interface Execution {
  readonly records: Map<string, Recorded>;
  /** Everything that ran, in order, also what was never recorded. */
  readonly ran: string[];
  readonly skipped: Map<string, string>;
  readonly events: GraphEvent[];
}

export interface FlowOptions {
  readonly execution?: Execution;
  readonly agents?: Readonly<Record<string, AgentCode>>;
  /** Answers by the name of the question; a question without one is asked for ever. */
  readonly answers?: Readonly<Record<string, JsonObject | "late">>;
  /** How many records are written before the crash. */
  readonly crashAfter?: number;
  /** How many turns of the loop a step takes. */
  readonly delay?: (key: string) => number;
}

export function newExecution(): Execution {
  return { records: new Map(), ran: [], skipped: new Map(), events: [] };
}

export class Crash extends Error {}

/** A flow, what it leaves behind, and whether it waits for nothing but answers. */
export function memoryFlow(options: FlowOptions = {}) {
  const { execution = newExecution(), agents = {}, answers = {}, delay = () => 1 } = options;
  const abort = new AbortController();
  let left = options.crashAfter ?? Number.POSITIVE_INFINITY;
  const open = new Set<string>();
  let working = 0;
  const asked = new Set<string>();

  async function once(key: string, run: () => unknown): Promise<unknown> {
    if (open.has(key)) throw new Error(`The step ${key} is asked for twice.`);
    open.add(key);
    const known = execution.records.get(key);
    working++;
    for (let turns = delay(key); turns > 0; turns--) await new Promise<void>((resolve) => setImmediate(resolve));
    working--;
    if (abort.signal.aborted) throw abort.signal.reason;
    const result = known ?? (await execute(key, run));
    if ("error" in result) throw result.error;
    return result.output;
  }

  async function execute(key: string, run: () => unknown): Promise<Recorded> {
    execution.ran.push(key);
    const result = await Promise.resolve()
      .then(run)
      .then(
        (output) => ({ output: output === undefined ? undefined : (JSON.parse(JSON.stringify(output)) as Json) }),
        (error: unknown) => ({ error }),
      );
    if (left-- <= 0) abort.abort(new Crash());
    if (abort.signal.aborted) throw abort.signal.reason;
    execution.records.set(key, result);
    return result;
  }

  async function tried(attempts: number, run: (attempt: number) => unknown): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run(attempt);
      } catch (error) {
        if (attempt >= attempts) throw error;
      }
    }
  }

  const within = (prefix: string): Flow => {
    const taken = new Map<string, number>();
    const keys = new Set<string>();
    /** As the engine counts: the first that nothing in this place has. */
    function keyFor(name: string, explicit?: string): string {
      let key = explicit ?? name;
      for (let count = (taken.get(name) ?? 0) + 1; explicit === undefined; count++) {
        key = count === 1 ? name : `${name}#${count}`;
        taken.set(name, count);
        if (!keys.has(key)) break;
      }
      if (keys.has(key)) throw new Error(`The key ${key} is used twice.`);
      keys.add(key);
      return prefix + key;
    }
    const flow: Partial<Flow> & { readonly [showsLive]: (event: GraphEvent) => void } = {
      workflow: (async (name: string, workflow: AnyWorkflow, input: unknown) =>
        workflow.run(within(`${keyFor(name)}/`), input)) as Flow["workflow"],
      executionId: "x",
      version: 1,
      signal: abort.signal,
      step: (async (name: string, run: (context: StepContext) => unknown, given: StepOptions = {}) => {
        const key = keyFor(name, given.key);
        return once(key, () =>
          tried(given.retry?.attempts ?? 1, (attempt) =>
            run({ executionId: "x", stepId: key, key, attempt, signal: abort.signal }),
          ),
        );
      }) as Flow["step"],
      agent: (async (name: string, agent: { name: string }, input: unknown, given: AgentNodeOptions = {}) =>
        once(keyFor(name, given.key), async () => {
          const said = await tried(given.retry?.attempts ?? 1, () => agents[agent.name]!(input, given));
          return given.output ? { text: "", output: said, usage: {} } : { text: String(said), usage: {} };
        })) as Flow["agent"],
      async ask(name: string, { request }: AskOptions = {}) {
        const key = keyFor(name);
        asked.add(key);
        execution.events.push({ type: "asked", key, request } as never);
        const answer = answers[key];
        if (answer === undefined) return new Promise<never>(() => {});
        asked.delete(key);
        return (await once(key, () => {
          if (answer === "late") throw new BoughError("no_answer", "Nobody answered in time.");
          return answer;
        })) as JsonObject;
      },
      async skip(name: string, why: string) {
        const key = keyFor(name);
        if (execution.records.has(key)) throw new Error(`The step ${key} has its result and can't be skipped.`);
        execution.skipped.set(key, why);
      },
      [showsLive]: (event) => void execution.events.push(event),
    };
    return flow as Flow;
  };
  return { flow: within(""), execution, asked, isQuiet: () => working === 0 };
}

/** Runs a workflow to its end in one flow. */
export async function runAll(workflow: AnyWorkflow, input: unknown, options: FlowOptions = {}) {
  const { flow, execution } = memoryFlow(options);
  const output = await workflow.run(flow, input);
  return { output, ...execution };
}

/** The keys of nodes that ran, without what belongs to them. */
export function nodesRun({ ran }: Pick<Execution, "ran">): string[] {
  return ran.filter((key) => !/[./]|->/.test(key));
}
