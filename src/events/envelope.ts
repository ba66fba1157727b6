// The live envelope: an event as watchers see it. It adds the routing that durable text leaves out.

import type * as v from "valibot";
import { type Fact, isUnknown, typeName, type UnknownFact } from "./codec.ts";
import type { Channel, Direction, EventDefinition } from "./define.ts";
import { keptEvents } from "./kept.ts";
import { liveEvents } from "./live.ts";
import { withoutTexts } from "./prompt.ts";

/** The agent that emitted an event, and the chain of agents that called it, root first. */
export interface AgentStamp {
  readonly id?: string;
  readonly name?: string;
  readonly chain: readonly string[];
  /** 0 for the root agent. */
  readonly depth: number;
}

/** Where an event belongs. */
export interface Routing {
  readonly sessionId: string;
  readonly branchId: string;
  readonly runId?: string;
  readonly agent?: AgentStamp;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
}

interface Addressed extends Routing {
  readonly version: number;
  readonly channel: Channel;
  readonly direction: Direction;
  readonly at: number;
  readonly turnId?: string;
  readonly messageId?: string;
}

type LiveDefinitions = (typeof liveEvents)[number];
/** The types of live events. */
export type LiveType = LiveDefinitions["type"];
/** A live event before it is addressed. */
export type LiveDraft<Type extends LiveType = LiveType> = {
  [T in Type]: { readonly type: T } & Readonly<v.InferOutput<Extract<LiveDefinitions, { type: T }>["schema"]>>;
}[Type];

/** A fact as a subscriber sees it; `seq` is the cursor to resume from. */
export type KeptEvent = Addressed & Fact;
/** A kept event of a kind this version does not know. */
export type UnknownEvent = Addressed & {
  readonly type: `unknown:${string}`;
  readonly seq: number;
  readonly id: string;
  readonly payload: UnknownFact["payload"];
};
/** A live event as a subscriber sees it; it has no `seq`. */
export type LiveEvent = Addressed & LiveDraft & { readonly seq?: never };
/** Everything a subscriber can see. */
export type BoughEvent = KeptEvent | UnknownEvent | LiveEvent;

const definitions = new Map<string, EventDefinition>(
  [...keptEvents, ...liveEvents].map((definition) => [definition.type, definition]),
);

/** Whether events of this type are facts in the log; part of the type's definition, never of its channel. */
export function isKept(type: string): boolean {
  return definitions.get(type)?.kept ?? (type.includes(".") || type.startsWith("unknown:"));
}

/** A fact with its address. */
export function keptEvent(fact: Fact | UnknownFact, routing: Routing & { turnId?: string }): KeptEvent | UnknownEvent {
  const address = { ...addressOf(typeName(fact)), ...routing };
  if (isUnknown(fact)) return { ...address, ...fact };
  const ids: { turnId?: string; messageId?: string } = {};
  if (fact.type === "turn.started") ids.turnId = fact.id;
  if (fact.type === "message.added") ids.messageId = fact.id;
  return { ...address, ...ids, ...withoutTexts(fact) } as KeptEvent;
}

/** A live event with its address. */
export function liveEvent(draft: LiveDraft, routing: Routing & { at: number; turnId?: string }): LiveEvent {
  return { ...addressOf(draft.type), ...routing, ...draft } as LiveEvent;
}

function addressOf(type: string): { version: number; channel: Channel; direction: Direction } {
  const { version = 1, channel = "default", direction = "down" } = definitions.get(type) ?? {};
  return { version, channel, direction };
}
