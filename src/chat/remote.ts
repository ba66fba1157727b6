// A conversation with an agent on a server. Its runs continue there even when this process stops listening.

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { Mailbox } from "../base/mailbox.ts";
import { maskUrl } from "../base/mask-url.ts";
import type { Client, RemoteBranch } from "../client/index.ts";
import { type BoughEvent, liveEvent } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { MessageSnapshot } from "../wire/frames.ts";
import type { BranchHandle, CompactionInfo, ContentHandle, Input, QueuedInputBody, TaskBody } from "../wire/index.ts";
import type { StateBody } from "../wire/types.ts";
import { type BranchLine, type Conversation, type Picture, type SessionLine, turnEnds } from "./conversation.ts";

export class RemoteConversation implements Conversation {
  readonly agentId: string;
  readonly about: readonly string[];
  onNotice: (text: string) => void = () => {};
  readonly #client: Client;
  readonly #attempts: number;
  readonly #closing = new AbortController();

  /** `attempts` is how many consecutive reconnects may fail before the conversation does. */
  constructor(given: { client: Client; agentId: string; url: string; attempts: number }) {
    const { client, agentId, url, attempts } = given;
    this.#client = client;
    this.#attempts = attempts;
    this.agentId = agentId;
    this.about = [`${agentId}, served at ${maskUrl(url)}.`];
  }

  async sessions(limit: number): Promise<readonly SessionLine[]> {
    const { sessions } = await this.#client.listSessions({ limit, include: ["title"] });
    return sessions.map(({ id, lastActivity, title }) => ({ id, lastActivity, ...(title !== undefined && { title }) }));
  }

  async openSession(sessionId: string | undefined): Promise<string> {
    try {
      return (await this.#client.createSession(sessionId)).id;
    } catch (error) {
      if (sessionId !== undefined && BoughError.is(error, "session_exists")) return sessionId;
      throw error;
    }
  }

  async branches(sessionId: string): Promise<readonly BranchLine[]> {
    const branches = await this.#client.listBranches(sessionId);
    return branches.map(({ id, messageCount: messages, forkedFrom, forkedAtMessageIndex = -1 }) => ({
      id,
      messages,
      ...(forkedFrom !== undefined && { forkedFrom, shared: forkedAtMessageIndex + 1 }),
    }));
  }

  async look(ref: BranchRef, last: number): Promise<Picture> {
    const { branch, messages, openTurn, interactions } = await this.#branch(ref).state({ last });
    return {
      messages,
      before: branch.messageCount - messages.length,
      interactions,
      ...(openTurn && { open: openTurn.messages }),
    };
  }

  async fork(ref: BranchRef, { newBranchId, keep }: { newBranchId: string; keep?: number }): Promise<void> {
    await this.#branch(ref).fork({ newBranchId, ...(keep !== undefined && { fromMessageIndex: keep }) });
  }

  branch(ref: BranchRef): BranchHandle {
    return this.#branch(ref);
  }

  compact(ref: BranchRef, keep: number | undefined): Promise<CompactionInfo> {
    return this.#branch(ref).compact(keep === undefined ? {} : { keep: { turns: keep } });
  }

  uncompact(ref: BranchRef): Promise<CompactionInfo> {
    return this.#branch(ref).uncompact();
  }

  async *run(ref: BranchRef, input: Input | undefined): AsyncIterable<BoughEvent> {
    const branch = this.#branch(ref);
    const state = await branch.state({ last: 1 });
    const left = new AbortController();
    try {
      const events = await this.#listen(branch, state.seq, AbortSignal.any([left.signal, this.#closing.signal]));
      const runId = input === undefined ? await this.#takeUp(branch, state) : (await branch.submit(input)).runId;
      if (runId === undefined && !state.openTurn) return;
      let turnId = input === undefined ? state.openTurn?.id : undefined;
      for await (const event of events) {
        if (event.type === "turn.started" && event.runId === runId) turnId = event.id;
        yield event;
        if (turnEnds.has(event.type) && event.turnId === turnId) return;
      }
    } finally {
      left.abort();
    }
  }

  content(ref: BranchRef): ContentHandle {
    return this.#branch(ref).content;
  }

  queue(ref: BranchRef): Promise<readonly QueuedInputBody[]> {
    return this.#branch(ref).queue();
  }

  async editInput(ref: BranchRef, inputId: string, text: string): Promise<void> {
    await this.#branch(ref).editInput(inputId, { input: text });
  }

  tasks(ref: BranchRef): Promise<readonly TaskBody[]> {
    return this.#branch(ref).tasks();
  }

  cancelTask(ref: BranchRef, taskId: string): Promise<void> {
    return this.#branch(ref).cancelTask(taskId);
  }

  withdrawInput(ref: BranchRef, inputId: string): Promise<void> {
    return this.#branch(ref).withdrawInput(inputId);
  }

  contextUsage(ref: BranchRef) {
    return this.#branch(ref).contextUsage();
  }

  async respond(ref: BranchRef, interactionId: string, answer: JsonObject): Promise<void> {
    await this.#branch(ref).respond(interactionId, answer);
  }

  async interrupt(ref: BranchRef): Promise<void> {
    await this.#branch(ref).interrupt();
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }

  #branch(ref: BranchRef): RemoteBranch {
    return this.#client.branch({ agentId: this.agentId, ...ref });
  }

  /** The run of the open turn: the active one, or a new one. */
  async #takeUp(branch: RemoteBranch, state: StateBody): Promise<string | undefined> {
    const { activeRun, openTurn, interactions } = state;
    if (activeRun) return activeRun.runId;
    // The answer resumes it.
    if (interactions.some(({ turnId }) => turnId === openTurn?.id)) return undefined;
    try {
      return (await branch.submit()).runId;
    } catch (error) {
      // The server has resumed it already, or it has ended.
      if (BoughError.is(error, "run_active") || BoughError.is(error, "nothing_to_resume")) return undefined;
      throw error;
    }
  }

  /** Resolves when the stream is open, so that no later event is missed. */
  #listen(branch: RemoteBranch, after: number, signal: AbortSignal): Promise<AsyncIterable<BoughEvent>> {
    return new Promise((resolve, reject) => {
      const events = new Mailbox<BoughEvent>();
      const heard = new Heard();
      let isLost = false;
      const subscription = branch.subscribe({
        after,
        signal,
        onEvent: (event) => events.push(heard.event(event)),
        onSnapshot: (message) => {
          const rest = heard.snapshot(message);
          if (rest) events.push(rest);
        },
        onReady: () => resolve(events),
        onConnection: ({ state, losses, error }) => {
          if (state === "waiting" && losses > this.#attempts) events.close({ error });
          if (state === "waiting" && !isLost) this.onNotice("Connection lost; reconnecting …");
          if (state === "live" && isLost) this.onNotice("Reconnected.");
          if (state === "waiting" || state === "live") isLost = state === "waiting";
        },
      });
      void subscription.ended.then(({ error }) => {
        const failure = error ?? new BoughError("aborted", "The connection was closed.");
        events.close(signal.aborted ? undefined : { error: failure });
        reject(failure);
      });
    });
  }
}

/** The text received of messages in progress, so that a snapshot adds only what was missed. */
class Heard {
  readonly #texts = new Map<string, string>();

  event(event: BoughEvent): BoughEvent {
    if (event.type === "text-delta") this.#add(event.messageId, event.text);
    if (event.type === "message.added") this.#texts.delete(event.id);
    return event;
  }

  /** The missing text as a delta; if the snapshot doesn't extend the received text, the complete message corrects it. */
  snapshot({ messageId, text, sessionId, branchId }: MessageSnapshot): BoughEvent | undefined {
    const known = this.#texts.get(messageId) ?? "";
    const rest = text.startsWith(known) ? text.slice(known.length) : "";
    if (rest === "") return undefined;
    this.#add(messageId, rest);
    return liveEvent({ type: "text-delta", messageId, text: rest }, { sessionId, branchId, at: Date.now() });
  }

  #add(messageId: string, text: string): void {
    this.#texts.set(messageId, (this.#texts.get(messageId) ?? "") + text);
  }
}
