// Places: the branches on which the agents of an execution work, by its conversation policy.
//   FlowPlaces-1. A node's branch follows from the execution and the node, so it is made once, and found again after a crash.
//   FlowPlaces-2. What a branch is for is stamped on it when it is made, for those who list an execution without loading it.
//   FlowPlaces-3. Nodes of one branch work one after the other: in this process first come first served, otherwise by its slot.

import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { sha256Hex } from "../../base/sha256.ts";
import type { BranchRef } from "../../log/store.ts";
import { createBranch } from "../../sessions/branches.ts";
import { mainBranch } from "../../sessions/session.ts";
import { beginTurn } from "../../sessions/turns.ts";
import type { ConversationPolicy } from "../port.ts";
import type { Execution } from "./execution.ts";

/** The branch that "shared" nodes work on, and that "forkPerNode" nodes are forks of. */
const rootName = "workflow";
const nodePrefix = "workflow-agent";

export interface NodePlace {
  readonly policy: Exclude<ConversationPolicy, "none">;
  readonly nodeId: string;
  readonly agent: { readonly id: string; readonly name: string };
  readonly metadata: JsonObject | undefined;
}

/** What lists show of a session or a branch of an execution. */
export function stampsOf(
  { name, executionId }: { readonly name: string; readonly executionId: string },
  mode: ConversationPolicy,
): JsonObject {
  return {
    kind: "multi-agent",
    workspaceKind: "multi-agent-workflow",
    workflowName: name,
    workflowExecutionId: executionId,
    conversationMode: mode,
    createdBy: "multi-agent",
  };
}

export class Places {
  readonly #execution: Execution;
  readonly #inputText: string;
  readonly #roots = new Map<string, Promise<BranchRef>>();
  /** The end of what works on a branch in this process (FlowPlaces-3). */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(execution: Execution, inputText: string) {
    this.#execution = execution;
    this.#inputText = inputText;
  }

  /** The node's branch, made if it is not there. */
  async branchFor(place: NodePlace): Promise<BranchRef> {
    const { policy } = place;
    if (policy === "shared") return this.#root(place, false);
    const { ref } = this.#execution.place;
    const branchId = this.#idOf(`${nodePrefix}-${this.#execution.stamp.executionId}-${place.nodeId}`);
    const made = { sessionId: ref.sessionId, branchId };
    const details = { name: place.nodeId, metadata: this.#stamps(place), owner: this.#owner(place.nodeId) };
    if (policy === "perNode") await this.#create(made, details);
    else await this.#fork(await this.#root(place, true), made, details);
    return made;
  }

  /** Works on a branch when those who came before are done. */
  inTurn<T>({ branchId }: BranchRef, work: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(branchId) ?? Promise.resolve();
    const working = before.then(work, work);
    this.#queues.set(
      branchId,
      working.catch(() => {}),
    );
    return working;
  }

  /** The shared branch; with the execution's input as its first message where nodes fork it. */
  #root(place: NodePlace, hasInput: boolean): Promise<BranchRef> {
    const branchId = this.#idOf(hasInput ? `${rootName}-input` : rootName);
    const known = this.#roots.get(branchId) ?? this.#makeRoot(branchId, place, hasInput);
    this.#roots.set(branchId, known);
    known.catch(() => this.#roots.delete(branchId));
    return known;
  }

  async #makeRoot(branchId: string, { policy }: NodePlace, hasInput: boolean): Promise<BranchRef> {
    const { context, ref } = this.#execution.place;
    const root = { sessionId: ref.sessionId, branchId };
    const metadata = stampsOf(this.#execution.stamp, policy);
    await this.#create(root, { name: rootName, metadata, owner: this.#owner(rootName) });
    if (!hasInput) return root;
    // Killed in between, it is there without its message.
    const { view } = await context.views.loadForRun(root);
    if (view.turns.length > 0) return root;
    const text = this.#inputText === "" ? "(no input)" : this.#inputText;
    const turn = await beginTurn(context, root, text).catch((error) => {
      // Another process is about to write it.
      if (!BoughError.is(error, "run_active")) throw error;
      return undefined;
    });
    await turn?.commit({ reason: "input" });
    return root;
  }

  /** Branches of an execution that is not the session's own are told apart from those of its source. */
  #idOf(id: string): string {
    const { ref } = this.#execution.place;
    const own = ref.branchId === mainBranch ? "" : `-${sha256Hex(ref.branchId).slice(0, 8)}`;
    return slugged(id) + own;
  }

  #stamps({ policy, nodeId, agent, metadata }: NodePlace): JsonObject {
    const { id: agentId, name: agentName } = agent;
    return {
      ...metadata,
      ...stampsOf(this.#execution.stamp, policy),
      nodeId,
      agentId,
      agentName,
      visibility: "visible",
    };
  }

  #owner(callId: string) {
    const { turn, place } = this.#execution;
    return { ...place.ref, turnId: turn.turnId, callId, kind: "workflow" };
  }

  async #create(ref: BranchRef, details: object): Promise<void> {
    const { context } = this.#execution.place;
    await unlessThere(createBranch(context, ref.sessionId, { branchId: ref.branchId, ...details }));
  }

  async #fork(source: BranchRef, ref: BranchRef, details: object): Promise<void> {
    const { context } = this.#execution.place;
    const { host } = this.#execution.turn;
    await unlessThere(host.fork(context, source, { newBranchId: ref.branchId, ...details }));
  }
}

async function unlessThere(making: Promise<unknown>): Promise<void> {
  await making.catch((error) => {
    if (!BoughError.is(error, "branch_exists")) throw error;
  });
}

/** In a form that ids, files and URLs take; what is lost of it comes back as a digest. */
function slugged(id: string): string {
  const slug = id.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, 160);
  return slug === id ? id : `${slug}-${sha256Hex(id).slice(0, 8)}`;
}
