import { moment, shorten, visible } from "../../chat/text.ts";
import { type LogEvent, type LogFact, openSessions, type Scope, type Sessions } from "../../sessions/index.ts";
import { branchArgs, type Call, defineCommand, jsonArg, scopeOf, storeArg, wholeNumber } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { type Terminal, toJson } from "../terminal.ts";

const pageSize = 1000;

const tailArgs = {
  ...branchArgs,
  after: {
    type: "string",
    valueHint: "N",
    description: "all events after this position (default: the last 20 events)",
  },
  follow: { type: "boolean", alias: "f", description: "wait for new events until Ctrl-C" },
  ...storeArg,
  ...jsonArg,
} as const;

export const eventsTail = defineCommand({
  args: tailArgs,
  examples: ["events tail user-123", "events tail user-123 main --after 0 --json", "events tail user-123 main -f"],
  async run(call) {
    const scope = scopeOf(call.args);
    await withStore(chooseStore(call.args.store), {}, async (store) => tail(await openSessions(store), scope, call));
    return 0;
  },
});

async function tail(
  sessions: Sessions,
  scope: Scope,
  { args, terminal, signal }: Call<typeof tailArgs>,
): Promise<void> {
  const show = (event: LogFact) => terminal.print(args.json ? toJson(event) : lineOf(terminal, event));
  let after: number;
  if (args.after === undefined) {
    const newest = (await sessions.events(scope, { reverse: true, limit: 20 })).reverse();
    for (const event of newest) show(event);
    after = newest.at(-1)?.seq ?? 0;
  } else {
    after = await showAll(sessions, scope, { after: wholeNumber(args.after, "after"), show, signal });
  }
  if (!args.follow) return;
  for await (const event of sessions.watch(scope, { after, signal })) show(factOf(event));
}

async function showAll(
  sessions: Sessions,
  scope: Scope,
  { after, show, signal }: { after: number; show: (event: LogFact) => void; signal: AbortSignal },
): Promise<number> {
  for (let position = after; ; ) {
    const page = await sessions.events(scope, { after: position, limit: pageSize });
    for (const event of page) show(event);
    position = page.at(-1)?.seq ?? position;
    if (page.length < pageSize || signal.aborted) return position;
  }
}

/** The event as it is stored, so that new events look like existing ones. */
function factOf(event: LogEvent): LogFact {
  const { sessionId: _sessionId, branchId: _branchId, version: _version, ...rest } = event;
  const { channel: _channel, direction: _direction, ...fact } = rest as Record<string, unknown>;
  if (event.type === "turn.started") delete fact.turnId;
  if (event.type === "message.added") delete fact.messageId;
  return fact as unknown as LogFact;
}

/** Ids matter least to a person, so they come last, where the line may be cut off. */
const ids = ["messageId", "compactionId", "turnId", "runId", "callId", "interactionId", "agentId"];

/** Position, time, type, and as many fields as fit. */
function lineOf(terminal: Terminal, event: LogFact): string {
  const { seq, type, at, id, ...payload } = event as LogFact & Record<string, unknown>;
  // The id names what the event creates; for other types it means nothing to a person.
  const [begun] = type.split(".").filter((noun) => noun === "message" || type === "turn.started");
  const told = type.startsWith("history.") ? { ...historyOf(payload), compactionId: id } : payload;
  const fields = Object.entries(begun === undefined ? told : { ...told, [`${begun}Id`]: id });
  fields.sort(([a], [b]) => ids.indexOf(a) - ids.indexOf(b));
  const rest = Object.fromEntries(fields.map(([key, value]) => [key, key === "content" ? wordsOf(value) : value]));
  const start = `${String(seq).padStart(6)}  ${moment(at as number)}  ${type.padEnd(20)}  `;
  const room = Math.max(terminal.columns - start.length, 20);
  return start + terminal.paint("dim", shorten(visible(JSON.stringify(rest)), room));
}

/** What a compaction covers and shows instead, rather than positions and whole messages. */
function historyOf(payload: Record<string, unknown>): Record<string, unknown> {
  const {
    retention,
    from,
    to,
    first,
    last,
    keep,
    replacements,
    overlays,
    cleared,
    over: _,
    turnId: __,
    ...rest
  } = payload;
  const many = (list: unknown) => (list as readonly unknown[]).length;
  const shows = (replacements as readonly { content: unknown }[] | undefined)?.map(({ content }) => wordsOf(content));
  return {
    ...(retention !== undefined && { retention, messages: (to as number) - (from as number), first, last }),
    ...(keep !== undefined && many(keep) > 0 && { kept: many(keep) }),
    ...(shows && { shows }),
    ...(overlays !== undefined && { inForce: many(overlays) }),
    ...(cleared !== undefined && { cleared: many(cleared) }),
    ...rest,
  };
}

/** Content with a single text part is shown as that text. */
function wordsOf(content: unknown): unknown {
  const [first, ...others] = Array.isArray(content) ? (content as { type?: string; text?: string }[]) : [];
  return first?.type === "text" && others.length === 0 ? first.text : content;
}
