// A run as far as middleware can see it: contexts that write down what hooks do with them.

import type { Json, JsonObject } from "../../src/base/json.ts";
import type { ToolOutput } from "../../src/events/index.ts";
import {
  type Answer,
  type HookContext,
  type IterationContext,
  type PermissionGrant,
  type Question,
  StateBag,
  type ToolBatchContext,
  type ToolCallContext,
} from "../../src/middleware/index.ts";
import type { ModelRequest } from "../../src/models/index.ts";
import type { Tool, ToolContext } from "../../src/tools/index.ts";

/** What outlives a run: the session's state and the answers that were given. */
const notHere = () => Promise.reject(new Error("not here"));

export interface Kept {
  session: JsonObject;
  branch: JsonObject;
  readonly answers: Map<string, Answer>;
}

export function nothingKept(): Kept {
  return { session: {}, branch: {}, answers: new Map() };
}

type Answering = (question: Question) => JsonObject | Answer;

let runs = 0;

/** A run without context, identity and metadata. */
const nothingAsked = { context: undefined, identity: {}, metadata: {}, sessionMetadata: async () => ({}) };

export class FakeRun {
  readonly asked: Question[] = [];
  readonly stopped: string[] = [];
  readonly granted: PermissionGrant[] = [];
  readonly limits: [string, number | undefined][] = [];
  readonly emitted: [string, Json][] = [];
  readonly abort = new AbortController();
  readonly kept: Kept;
  readonly bag: StateBag;
  readonly hook: HookContext;
  readonly #answering: Answering | undefined;

  constructor(options: { kept?: Kept; answer?: Answering; resumed?: boolean } = {}) {
    const { kept = nothingKept(), resumed = false } = options;
    this.kept = kept;
    this.#answering = options.answer;
    this.bag = new StateBag({
      branch: kept.branch,
      session: async () => kept.session,
      changeSession: async (change) => {
        kept.session = { ...kept.session, ...change(kept.session) };
        return kept.session;
      },
      report: () => {},
      declared: [],
    });
    this.hook = {
      ...{ sessionId: "s", branchId: "main", turnId: "t", runId: `run-${++runs}`, resumed },
      signal: this.abort.signal,
      ...nothingAsked,
      agent: { id: "a1", name: "helper", chain: [], depth: 0 },
      state: this.bag,
      emit: ((name: string, data: Json) => void this.emitted.push([name, data])) as HookContext["emit"],
      reachLimit: (limit, value) => this.limits.push([limit, value]),
      ask: (question) => this.#ask(question),
      withdraw: async () => undefined,
      checkpoint: async () => "c",
      stop: (reason) => this.stopped.push(reason),
    };
  }

  iteration(iteration: number, request: Partial<ModelRequest> = {}): IterationContext {
    const given = { model: fakeModel, prompt: [], tools: [], settings: {}, ...request };
    return { ...this.hook, iteration, request: given, answer() {}, isAnswered: false };
  }

  batch(): ToolBatchContext {
    return { ...this.hook, iteration: 1, calls: [], skip() {} };
  }

  call(tool: Tool, options: { input?: Json; callId?: string; starts?: number } = {}): ToolCallContext & Blocked {
    const { input = {}, callId = "call-1", starts = 0 } = options;
    const call = { type: "tool-call", toolCallId: callId, toolName: tool.name, input } as const;
    return {
      ...this.hook,
      ...{ iteration: 1, call, tool, input, starts, isUnsure: starts > 0, blocked: undefined },
      block(output) {
        this.blocked = output;
      },
      grant: (grant) => this.granted.push(grant),
      get isBlocked() {
        return this.blocked !== undefined;
      },
    };
  }

  toolContext(ask: ToolContext["ask"] = async () => "yes"): ToolContext {
    const { state, emit, checkpoint, sessionId, branchId, turnId, runId, signal } = this.hook;
    return {
      ...nothingAsked,
      ...{ state, emit, checkpoint, sessionId, branchId, turnId, runId, signal, ask },
      ...{ callId: "call-1", toolName: "tool", attempt: 1, messages: [] },
      progress() {},
      background: async () => "task",
      spawn: () => Promise.reject(new Error("nothing is spawned here")),
      tasks: { list: notHere, check: notHere, message: notHere, cancel: notHere },
      attach: () => Promise.reject(new Error("not here")),
      content: { get: () => Promise.reject(new Error("not here")), text: () => Promise.reject(new Error("not here")) },
    };
  }

  async #ask(question: Question): Promise<Answer> {
    const name = `${question.kind} ${question.callId ?? ""} ${question.key ?? ""}`;
    const known = this.kept.answers.get(name);
    if (known) return known;
    this.asked.push(question);
    const given = this.#answering?.(question) ?? { answered: false, reason: "nobody" };
    const answer = ("answered" in given ? given : { answered: true, answer: given }) as Answer;
    this.kept.answers.set(name, answer);
    return answer;
  }
}

interface Blocked {
  blocked: ToolOutput | undefined;
}

export const fakeModel: ModelRequest["model"] = {
  specificationVersion: "v4",
  provider: "openai.responses",
  modelId: "gpt-test",
  doStream: async () => ({ stream: new ReadableStream() }),
};

export function fakeTool(fields: Partial<Tool> = {}): Tool {
  return {
    name: "send",
    inputSchema: { type: "object" },
    isChecked: false,
    effect: "retry",
    permission: true,
    parse: async (value) => ({ value }),
    execute: () => "sent",
    toOutput: (value) => ({ type: "text", value: String(value) }),
    ...fields,
  };
}
