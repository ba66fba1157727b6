// Executions of workflows, in a store or on a server, for the commands about them.

import type { ArgDef } from "citty";
import { BoughError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { createClient } from "../client/index.ts";
import type { BranchRef } from "../log/store.ts";
import { createContext } from "../sessions/context.ts";
import { Sessions } from "../sessions/index.ts";
import { mainBranch } from "../sessions/session.ts";
import { sendSignal } from "../sessions/signals.ts";
import { NamespacedStore } from "../stores/namespaced/index.ts";
import type { BranchSummary } from "../wire/index.ts";
import { type ExecutionStep, executionSteps } from "../workflows/index.ts";
import { stepsOf } from "../workflows/steps.ts";
import { misuse, storeArg } from "./command.ts";
import { serverArgs, serverAt } from "./server.ts";
import { chooseStore, withStore } from "./store.ts";

/** Where executions are looked for. */
export const executionPlace = {
  ...serverArgs,
  store: { ...storeArg.store, description: "without --url: the store (default: BOUGH_STORE, else ./.bough/bough.db)" },
} as const satisfies Record<string, ArgDef>;

/** An execution that a command is about. */
export const executionWord = {
  execution: {
    type: "positional",
    valueHint: "EXECUTION",
    required: true,
    description: "the execution's id, or the id of its session",
  },
} as const satisfies Record<string, ArgDef>;

export const executionOptions = {
  workflow: { type: "string", valueHint: "NAME", description: "its workflow, if several have an execution of that id" },
  branch: { type: "string", valueHint: "ID", default: mainBranch, description: "its branch (default: main)" },
  ...executionPlace,
} as const satisfies Record<string, ArgDef>;

/** What the row of a branch tells. */
export type ExecutionRow = Pick<BranchSummary, "openTurnId" | "asleep" | "waiting" | "ended" | "agentId">;

export type ExecutionState = "open" | "waiting" | "asleep" | "ended" | "interrupted" | "failed";

interface Found {
  readonly id: string;
  readonly metadata: JsonObject;
  readonly createdAt: number;
  readonly lastActivity: number;
}

interface ExecutionQuery {
  readonly metadata: Readonly<Record<string, string>>;
  readonly limit: number;
  readonly cursor?: string;
}

/** A store or a server, as far as executions are concerned. */
export interface Executions {
  list(query: ExecutionQuery): Promise<{ readonly sessions: readonly Found[]; readonly cursor?: string | undefined }>;
  row(ref: BranchRef): Promise<ExecutionRow>;
  steps(ref: BranchRef, row: ExecutionRow): Promise<ExecutionStep[]>;
  /** When it wakes by itself, if it sleeps. */
  wakesAt(ref: BranchRef, row: ExecutionRow): Promise<number | undefined>;
  signal(ref: BranchRef, row: ExecutionRow, signal: { name: string; payload?: Json; id?: string }): Promise<string>;
}

interface PlaceWords {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly store?: string | undefined;
}

/** Opens the executions of the store or the server that the arguments name. */
export async function withExecutions<T>(args: PlaceWords, work: (executions: Executions) => Promise<T>): Promise<T> {
  const { store } = args;
  const server = serverAt(args, { store });
  if (server) return work(onServer(server));
  return withStore(chooseStore(store), {}, async (opened) => {
    // Sessions that a server reserves for itself are not available here.
    const context = createContext(new NamespacedStore(opened, ""), {});
    return work(inStore(new Sessions(context), (ref, signal) => sendSignal(context, ref, signal)));
  });
}

function inStore(
  sessions: Sessions,
  send: (ref: BranchRef, signal: { name: string }) => Promise<{ readonly signalId: string }>,
): Executions {
  return {
    list: (query) => sessions.listSessions(query),
    row: (ref) => sessions.getBranch(ref),
    steps: (ref) => executionSteps(sessions, ref),
    wakesAt: async (ref) => (await sessions.loadBranch(ref)).uncommittedTurn?.asleep?.until,
    signal: async (ref, _row, signal) => (await send(ref, signal)).signalId,
  };
}

function onServer(server: { url: string; token?: string }): Executions {
  const branchOf = (ref: BranchRef, { agentId = "-" }: ExecutionRow = {}) =>
    createClient({ ...server, agentId }).branch(ref);
  return {
    list: (query) => createClient({ ...server, agentId: "-" }).listSessions(query),
    row: (ref) => branchOf(ref).get(),
    async steps(ref, row) {
      const branch = branchOf(ref, row);
      const lastTurn = async () => (await branch.events({ type: "turn.started", order: "newest", limit: 1 }))[0]?.id;
      return stepsOf(await branch.state({ last: 1 }), lastTurn, (query) => branch.events(query));
    },
    wakesAt: async (ref, row) => (await branchOf(ref, row).state({ last: 1 })).openTurn?.asleep?.until,
    async signal(ref, row, { name, payload, id }) {
      return (await branchOf(ref, row).signal(name, payload, id === undefined ? {} : { id })).signalId;
    },
  };
}

/** What an execution does: an answer is waited for, or it sleeps, or it can go on, or it has ended. */
export function stateOf({ openTurnId, asleep, waiting = 0, ended }: ExecutionRow): ExecutionState {
  if (openTurnId === undefined) return ended ?? "ended";
  if (waiting > 0) return "waiting";
  return asleep ? "asleep" : "open";
}

/** The stamps of executions, as lists of sessions find them. */
export function stampedWith(stamps: { workflow?: string | undefined; execution?: string }): Record<string, string> {
  const { workflow, execution } = stamps;
  return {
    kind: "multi-agent",
    ...(workflow !== undefined && { workflowName: workflow }),
    ...(execution !== undefined && { workflowExecutionId: execution }),
  };
}

interface ExecutionWords {
  readonly execution: string;
  readonly workflow?: string | undefined;
  readonly branch: string;
}

/** Finds an execution by its id; a session is taken by its own id, too, because not every execution has one to itself. */
export async function findExecution(
  executions: Executions,
  { execution, workflow, branch: branchId }: ExecutionWords,
): Promise<{ readonly ref: BranchRef; readonly row: ExecutionRow }> {
  const { sessions } = await executions.list({ metadata: stampedWith({ workflow, execution }), limit: 10 });
  if (sessions.length > 1) {
    const names = sessions.map(({ metadata }) => String(metadata.workflowName));
    throw misuse(
      `Several workflows have an execution "${execution}". Choose one with --workflow: ${names.join(", ")}.`,
    );
  }
  const ref = { sessionId: sessions[0]?.id ?? execution, branchId };
  try {
    return { ref, row: await executions.row(ref) };
  } catch (error) {
    if (!BoughError.is(error, "session_not_found") && !BoughError.is(error, "invalid_argument")) throw error;
    const sentence = `There is no execution "${execution}". bough workflow ls lists those that have a session of their own.`;
    throw new BoughError("session_not_found", sentence, { data: { execution } });
  }
}
