// The options of an agent, with their defaults.

import type { Clock } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Redact } from "../base/redact.ts";
import type { OwnEventDefinition } from "../events/index.ts";
import type { Store } from "../log/store.ts";
import type { Tracer } from "../middleware/builtin/tracer.ts";
import type { Middleware, PermissionOptions } from "../middleware/index.ts";
import type { ModelChoice, ModelSettings, RetryPolicy } from "../models/index.ts";
import type { AudioOptions, CompactionOptions, ContentOptions, Durable, Limits } from "../runs/index.ts";
import type { ContentLimits } from "../sessions/index.ts";
import type { SpawnableAgent, ToolSet, ToolSource } from "../tools/index.ts";
import type { Handoffs } from "./startable.ts";

/** An agent object. */
type Spawnable = Exclude<SpawnableAgent, string>;

/** A Standard Schema (zod, valibot, arktype …) for the `context` option of a run. */
export interface ContextSchema<Context = unknown> {
  readonly "~standard": {
    readonly types?: { readonly input: Context; readonly output: unknown } | undefined;
    // biome-ignore lint/suspicious/noExplicitAny: each library has its own type of issue
    readonly validate: (value: unknown) => any;
  };
}

/** Options of `createAgent`. */
export interface AgentOptions<
  Context = unknown,
  Tools extends ToolSet = ToolSet,
  Events extends readonly OwnEventDefinition[] = readonly OwnEventDefinition[],
> {
  /** Stored with every turn. Recovery resumes only turns with this id. */
  readonly id?: string;
  readonly name?: string;
  /** An AI SDK model object, or `"provider/model"`. */
  readonly model: ModelChoice;
  /** Models that a run can select by name (`config: { model: "fast" }`). The name is stored, so a resumed run uses the same one. */
  readonly models?: Readonly<Record<string, ModelChoice>>;
  /** Validates the `context` of a run. Tools and hooks get the schema's output. */
  readonly context?: ContextSchema<Context>;
  /** The only tenant whose turns the agent starts and resumes (default: any). */
  readonly tenant?: string;
  /** Your own event types (`defineEvent`), which tools and hooks may emit. */
  readonly events?: Events;
  readonly instructions?: string;
  /** Finds the agents that tools name by id (`subagent("id", …)`). A server finds its own agents without it. */
  readonly agents?: (agentId: string) => Spawnable | undefined | Promise<Spawnable | undefined>;
  /**
   * Agents that a turn can be handed over to, by name: each gives the model a tool `handoff_to_<name>`, after which the same turn
   * goes on with that agent.
   */
  readonly handoffs?: Handoffs;
  /** Tools by name, or a list of such sets and of sources such as MCP servers. */
  readonly tools?: Tools | readonly (ToolSet | ToolSource)[];
  /** A store, a directory, or a URL such as `sqlite:./bough.db` (default: memory). */
  readonly store?: Store | string;
  /** Whether a turn is saved when it completes (default true). If false, it is staged until `saveSessionAndBranch`. */
  readonly persistAfterTurn?: boolean;
  /** Which checkpoints runs save, and how tool results are written. */
  readonly durable?: Durable;
  /** Middleware, the outermost first. Built-in middleware comes last. */
  readonly middleware?: readonly Middleware[];
  readonly limits?: Partial<Limits> & {
    /** At the iteration limit: end the turn (default), or ask a person whether to continue. */
    readonly onIterations?: "stop" | "ask";
  };
  readonly permissions?: PermissionOptions;
  /** How failed model calls are retried. */
  readonly retry?: Partial<RetryPolicy>;
  /** Settings of every model call. A run's own settings override them. */
  readonly settings?: ModelSettings;
  /**
   * Whether prompts carry hints for the provider's cache (default true): breakpoints for Anthropic's models, a key for OpenAI.
   * Your own breakpoints and keys in `providerOptions` take precedence.
   */
  readonly promptCaching?: boolean;
  /**
   * When runs compact the history that their model sees. Default: only after the provider has refused a prompt as too long.
   * `true` or options: also before that. `false`: never.
   */
  readonly compaction?: boolean | CompactionOptions;
  /** How files are sent to models. */
  readonly content?: ContentOptions;
  /** How much content may be stored (default: 100 MB for a file, no other limit). */
  readonly contentLimits?: Partial<ContentLimits>;
  /** How the agent listens and speaks. */
  readonly audio?: AudioOptions;
  /**
   * Whether to record OpenTelemetry spans (default true, if `@opentelemetry/api` has a provider), whether with message texts (default
   * false), and by which tracer (default: the registered provider's).
   */
  readonly telemetry?: boolean | { readonly recordContent?: boolean; readonly tracer?: Tracer };
  /** The lease of a run on its branch, renewed while the run is active (default 30 s). */
  readonly leaseMs?: number;
  /**
   * Removes secrets from the messages of provider, tool and hook errors before they are stored, shown or sent to the model
   * (default: keys, tokens, passwords and private keys of known formats). `false` changes nothing.
   */
  readonly redact?: Redact | false;
  /** Receives failures of subscribers and tool sources (default: the console). */
  readonly logger?: Pick<Console, "warn">;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** Random numbers from 0 to 1, for the jitter of retries. */
  readonly random?: () => number;
  /** The name in this agent's claims (default: this host and process). */
  readonly owner?: string;
  /** Bytes of conversations cached in memory (default 256 MiB, at most an eighth of the heap limit). */
  readonly cacheBytes?: number;
}
