// Client tools: calls that the client runs. Each change looks at all open interactions, so a page that was reloaded continues
// what the page before it left open.
//   Tools-1. In one page an interaction is worked on once.
//   Tools-2. Of several pages that answer, the server takes one; for the others that is no failure.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { InteractionBody } from "../wire/types.ts";
import { type Backoff, delayMs } from "./connection.ts";
import { isRemoteError } from "./errors.ts";

/** The second argument of a client tool's `execute`. */
export interface ClientToolContext {
  readonly callId: string | undefined;
  readonly interactionId: string;
  /** Aborts when the answer is no longer needed: another client answered, it expired, the turn ended, the page closes. */
  readonly signal: AbortSignal;
}

/** A tool that runs in the client. The server's agent has a tool of the same name without `execute`. */
export interface ClientTool {
  // biome-ignore lint/suspicious/noExplicitAny: the input is what the server's schema let through
  execute(input: any, context: ClientToolContext): unknown;
}

/** Tools that run in the client, by name. */
export type ClientTools = Readonly<Record<string, ClientTool>>;

export interface ToolRunnerOptions {
  tools(): ClientTools;
  respond(interactionId: string, answer: JsonObject): Promise<unknown>;
  /** A refusal that is not about who was first. */
  onError(error: unknown): void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly backoff: Backoff;
}

export class ToolRunner {
  readonly #options: ToolRunnerOptions;
  readonly #working = new Map<string, AbortController>();

  constructor(options: ToolRunnerOptions) {
    this.#options = options;
  }

  /** These are open: starts what is new (Tools-1), aborts what is gone. */
  see(open: readonly InteractionBody[]): void {
    for (const [id, work] of this.#working) {
      if (open.some((each) => each.id === id)) continue;
      work.abort();
      this.#working.delete(id);
    }
    for (const interaction of open) {
      if (interaction.kind !== "client-tool" || this.#working.has(interaction.id)) continue;
      const tools = this.#options.tools();
      const name = String(interaction.request.toolName);
      if (Object.hasOwn(tools, name)) void this.#work(interaction, tools[name]!);
    }
  }

  close(): void {
    this.see([]);
  }

  async #work({ id, callId, request }: InteractionBody, tool: ClientTool): Promise<void> {
    const work = new AbortController();
    this.#working.set(id, work);
    const { signal } = work;
    const answer = await execute(tool, request.input ?? null, { callId, interactionId: id, signal });
    await this.#respond(id, answer, signal).catch((error: unknown) => {
      const isLate = BoughError.is(error, "interaction_closed") || BoughError.is(error, "interaction_not_found");
      if (!isLate && !signal.aborted) this.#options.onError(error);
    });
  }

  /** As often as it takes: an answer that came to nothing would leave the run waiting. */
  async #respond(id: string, answer: JsonObject, signal: AbortSignal): Promise<void> {
    const { respond, clock, random, backoff } = this.#options;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await respond(id, answer);
        return;
      } catch (error) {
        if (!isRemoteError(error) || !error.retryable) throw error;
        await clock.sleep(delayMs(tries, backoff, random(), error.retryAfterMs), signal);
      }
    }
  }
}

async function execute(tool: ClientTool, input: Json, context: ClientToolContext): Promise<JsonObject> {
  try {
    const output = (await tool.execute(input, context)) as Json | undefined;
    return { output: output ?? null };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
