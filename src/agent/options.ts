// What an agent can be told, and what it does when it is told nothing.

import type { Clock } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Redact } from "../base/redact.ts";
import type { OwnEventDefinition } from "../events/index.ts";
import type { Store } from "../log/store.ts";
import type { Middleware, PermissionOptions } from "../middleware/index.ts";
import type { ModelChoice, ModelSettings, RetryPolicy } from "../models/index.ts";
import type { CompactionOptions, Durable, Limits } from "../runs/index.ts";
import type { ToolSet, ToolSource } from "../tools/index.ts";

/** A Standard Schema (zod, valibot, arktype …) of what a run's caller passes as `context`. */
export interface ContextSchema<Context = unknown> {
  readonly "~standard": {
    readonly types?: { readonly input: Context; readonly output: unknown } | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: each library has its own type of issue
    readonly validate: (value: unknown) => any;
  };
}

/** What an agent is made of. */
export interface AgentOptions<
  Context = unknown,
  Tools extends ToolSet = ToolSet,
  Events extends readonly OwnEventDefinition[] = readonly OwnEventDefinition[],
> {
  /** Kept with every turn, so that a recovery finds the agent's own. */
  readonly id?: string;
  readonly name?: string;
  /** An AI SDK model object, or `"provider/model"`. */
  readonly model: ModelChoice;
  /** Models that a run may choose by name (`config: { model: "fast" }`), so that a resumed run finds the one it had. */
  readonly models?: Readonly<Record<string, ModelChoice>>;
  /** What a run's `context` must fit: tools and hooks get what the schema makes of it. */
  readonly context?: ContextSchema<Context>;
  /** The tenant whose turns the agent begins and takes up; it never takes up another one's. Default: any. */
  readonly tenant?: string;
  /** Event types of the program, made by `defineEvent`; tools and hooks emit them. */
  readonly events?: Events;
  readonly instructions?: string;
  /** By name; sources such as MCP servers stand beside sets in a list. */
  readonly tools?: Tools | readonly (ToolSet | ToolSource)[];
  /** A store, a directory, or a URL (`sqlite:./bough.db`); in memory when nothing is said. */
  readonly store?: Store | string;
  /** Whether a turn is saved as it completes (default), or waits for `saveSessionAndBranch`. */
  readonly persistAfterTurn?: boolean;
  /** Checkpoints taken while it runs. */
  readonly durable?: Durable;
  /** In the order of the list; what is built in comes after it. */
  readonly middleware?: readonly Middleware[];
  readonly limits?: Partial<Limits> & {
    /** At the limit of iterations: end the turn (default), or ask whether to go on. */
    readonly onIterations?: "stop" | "ask";
  };
  readonly permissions?: PermissionOptions;
  /** How failed model calls are tried again. */
  readonly retry?: Partial<RetryPolicy>;
  /** Settings of every model call; a run's own go before them. */
  readonly settings?: ModelSettings;
  /**
   * Whether prompts carry hints for the provider's cache (default true): breakpoints for Anthropic's models, a key for OpenAI.
   * Breakpoints and keys of your own in `providerOptions` are used in their place.
   */
  readonly promptCaching?: boolean;
  /**
   * When runs shorten what their model sees. By default only after the provider has refused a prompt as too long; `true` or
   * options: also before that; false: never.
   */
  readonly compaction?: boolean | CompactionOptions;
  /** OpenTelemetry spans when `@opentelemetry/api` has a provider (default), with or without the texts, or none. */
  readonly telemetry?: boolean | { readonly recordContent: boolean };
  /** How long a branch is held without a sign of life (default 30 s). */
  readonly leaseMs?: number;
  /**
   * Takes secrets out of the texts of provider, tool and hook errors before they are stored, shown or sent to the model. By
   * default keys, tokens, passwords and private keys of known shapes; false leaves every text as it is.
   */
  readonly redact?: Redact | false;
  /** Where a subscriber's or a tool source's failures go (default the console). */
  readonly logger?: Pick<Console, "warn">;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** From 0 to 1; spreads retries. */
  readonly random?: () => number;
  /** The name under which branches are held; by default this host and process. */
  readonly owner?: string;
  /** Bytes of conversations kept in memory (default 256 MiB, at most an eighth of the heap's limit). */
  readonly cacheBytes?: number;
}
