// A conversation with an agent in this process, on a local store.

import { type Agent, type AgentOptions, createAgent } from "../agent/index.ts";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { BoughEvent } from "../events/index.ts";
import type { BranchRef, Store } from "../log/store.ts";
import type { RunInput } from "../runs/index.ts";
import { detailsOf } from "../sessions/session-details.ts";
import { NamespacedStore } from "../stores/namespaced/index.ts";
import type { BranchHandle, CompactionInfo, ContentHandle, Input, QueuedInputBody, TaskBody } from "../wire/index.ts";
import { type BranchLine, type Conversation, type Picture, type SessionLine, turnEnds } from "./conversation.ts";

export class LocalConversation implements Conversation {
  readonly agentId: string;
  readonly about: readonly string[];
  onNotice: (text: string) => void = () => {};
  readonly #agent: Agent;
  readonly #store: Store;

  constructor(given: { agentId: string; options: AgentOptions; store: Store; about: readonly string[] }) {
    const { agentId, options, store, about } = given;
    this.agentId = agentId;
    this.about = about;
    this.#store = store;
    // Sessions that a server on the same store reserves for itself are not available here.
    this.#agent = createAgent({ ...options, id: agentId, store: new NamespacedStore(store, "") });
  }

  async sessions(limit: number): Promise<readonly SessionLine[]> {
    const { sessions } = await this.#agent.listSessions({ limit });
    const details = await detailsOf(new NamespacedStore(this.#store, ""), sessions, ["title"]);
    return sessions.map(({ id, lastActivity }, i) => ({ id, lastActivity, ...details[i] }));
  }

  async openSession(sessionId: string | undefined): Promise<string> {
    try {
      return (await this.#agent.createSession(sessionId)).id;
    } catch (error) {
      if (sessionId !== undefined && BoughError.is(error, "session_exists")) return sessionId;
      throw error;
    }
  }

  async branches(sessionId: string): Promise<readonly BranchLine[]> {
    const branches = await this.#agent.listBranches(sessionId);
    return branches.map(({ id, messageCount: messages, fork }) => ({
      id,
      messages,
      ...(fork && { forkedFrom: fork.forkedFrom, shared: fork.forkedAtMessageIndex + 1 }),
    }));
  }

  async look({ sessionId, branchId }: BranchRef, last: number): Promise<Picture> {
    const branch = await this.#agent.loadBranch({ sessionId, branchId });
    const messages = last === 0 ? [] : branch.messages.slice(-last);
    return {
      messages,
      before: branch.messages.length - messages.length,
      interactions: branch.interactions,
      ...(branch.uncommittedTurn && { open: branch.uncommittedTurn.messages }),
    };
  }

  async fork(ref: BranchRef, { newBranchId, keep }: { newBranchId: string; keep?: number }): Promise<void> {
    const point = keep === undefined ? {} : { fromMessageIndex: keep };
    await this.#agent.forkBranch(ref, { newBranchId, ...point });
  }

  branch(ref: BranchRef): BranchHandle {
    return this.#agent.branch(ref);
  }

  compact(ref: BranchRef, keep: number | undefined): Promise<CompactionInfo> {
    return this.#agent.compact(ref, keep === undefined ? {} : { keep: { turns: keep } });
  }

  uncompact(ref: BranchRef): Promise<CompactionInfo> {
    return this.#agent.uncompact(ref);
  }

  async *run(ref: BranchRef, input: Input | undefined): AsyncIterable<BoughEvent> {
    try {
      yield* this.#agent.run(input as RunInput | undefined, { ...ref, questions: "wait" });
    } catch (error) {
      const isElsewhere = input === undefined && BoughError.is(error, "run_active");
      if (!isElsewhere) throw error;
      yield* this.#watch(ref);
    }
  }

  content(ref: BranchRef): ContentHandle {
    return this.#agent.branch(ref).content;
  }

  queue(ref: BranchRef): Promise<readonly QueuedInputBody[]> {
    return this.#agent.branch(ref).queue();
  }

  async editInput(ref: BranchRef, inputId: string, text: string): Promise<void> {
    await this.#agent.branch(ref).editInput(inputId, { input: text });
  }

  tasks(ref: BranchRef): Promise<readonly TaskBody[]> {
    return this.#agent.branch(ref).tasks();
  }

  cancelTask(ref: BranchRef, taskId: string): Promise<void> {
    return this.#agent.branch(ref).cancelTask(taskId);
  }

  withdrawInput(ref: BranchRef, inputId: string): Promise<void> {
    return this.#agent.branch(ref).withdrawInput(inputId);
  }

  contextUsage(ref: BranchRef) {
    return this.#agent.contextUsage(ref);
  }

  async respond(ref: BranchRef, interactionId: string, answer: JsonObject): Promise<void> {
    await this.#agent.answer(ref, interactionId, answer);
  }

  async interrupt(ref: BranchRef): Promise<void> {
    await this.#agent.interrupt(ref);
  }

  async close(): Promise<void> {
    await this.#agent.close();
    await this.#store.close();
  }

  /** The facts of a turn that runs in another process. */
  async *#watch(ref: BranchRef): AsyncIterable<BoughEvent> {
    const { seq, uncommittedTurn } = await this.#agent.loadBranch(ref);
    if (!uncommittedTurn) return;
    this.onNotice("The turn is running in another process; following it.");
    for await (const event of this.#agent.watch(ref, { after: seq })) {
      yield event;
      if (turnEnds.has(event.type) && event.turnId === uncommittedTurn.id) return;
    }
  }
}
