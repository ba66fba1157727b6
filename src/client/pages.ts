// Following pages: the server gives long lists in pieces, and the handles give them whole.

import type { Fact, Message, UnknownFact } from "../events/index.ts";
import type { BranchEvents } from "../wire/handle.ts";
import type { EventsQuery } from "../wire/schemas.ts";
import type { MessagesBody, StateBody } from "../wire/types.ts";
import { isRemoteError } from "./errors.ts";

/** What the server takes as the size of a page. */
const mostAtOnce = 1000;

/** As the log keeps it. */
type Event = Fact | UnknownFact;

interface EventsBody {
  readonly events: readonly Event[];
  readonly after?: number;
  readonly before?: number;
}

/** As many events as asked for, in as many pages as the server makes of them. */
export async function collectEvents(
  ask: (query: Omit<EventsQuery, "types"> & { types?: string | undefined }) => Promise<EventsBody>,
  { after, before, limit = mostAtOnce, types, ...which }: EventsQuery,
): Promise<BranchEvents> {
  const key = which.order === "newest" ? "before" : "after";
  const events: Event[] = [];
  const range = { after, before };
  let cursor: number | undefined;
  do {
    const size = Math.min(mostAtOnce, limit - events.length);
    const page = await ask({ ...which, types: types?.join(), ...range, limit: size });
    events.push(...page.events);
    cursor = page[key];
    range[key] = cursor;
  } while (cursor !== undefined && events.length < limit);
  return cursor === undefined ? events : Object.defineProperty(events, key, { value: cursor });
}

type AskBefore = (query: { before: string; last: number | undefined }) => Promise<MessagesBody>;

/** The state with all messages of its open turn, and with the newest `last` of closed turns (all without it). */
export async function completeState<State extends StateBody>(
  state: State,
  ask: AskBefore,
  last = Number.POSITIVE_INFINITY,
): Promise<State> {
  const { openTurn } = state;
  if (state.before === undefined || state.messages.length >= last) return state;
  const isOfTurn = ({ turnId }: Message) => openTurn !== undefined && turnId === openTurn.id;
  let messages = [...state.messages];
  let ofTurn = [...(openTurn?.messages ?? [])];
  let before: string | undefined = state.before;
  while (before !== undefined && messages.length < last) {
    const wanted = last === Number.POSITIVE_INFINITY ? undefined : Math.min(mostAtOnce, last - messages.length);
    const page: MessagesBody = await ask({ before, last: wanted });
    ofTurn = [...page.messages.filter(isOfTurn), ...ofTurn];
    messages = [...page.messages.filter((message) => !isOfTurn(message)), ...messages];
    before = page.before;
  }
  const firstIndex = state.firstIndex - (messages.length - state.messages.length);
  const { before: _before, ...rest } = state;
  const turn = openTurn && { openTurn: { ...openTurn, messages: ofTurn } };
  return { ...(rest as State), messages, firstIndex, ...turn, ...(before !== undefined && { before }) };
}

/** How often a state is read anew when the branch was taken back while its pages were read. */
const looks = 3;

/** Begins anew when a message that a page was to begin at is gone. */
export async function lookAgain<T>(look: () => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await look();
    } catch (error) {
      if (n === looks || !isRemoteError(error) || error.code !== "message_not_on_branch") throw error;
    }
  }
}
