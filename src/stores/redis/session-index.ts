// The index over all sessions: by activity, by metadata, and which have claims or open branches. It lies under its own hash tag, so it can't
// be written together with a session; this file keeps it right all the same. Owns this handle's marks.
//
//   SessionIndex-1. A session's own keys are the truth. The index says where to look; every hit is checked against the truth.
//   SessionIndex-2. Before a handle changes what the index shows of a session, its mark for that session is acknowledged, and it stays
//       until the index shows the session as it was after the change. A handle that dies leaves its marks behind.
//   SessionIndex-3. So the index is right about every session without a mark; who reads it brings the marked ones up to date first.
//   SessionIndex-4. An entry is replaced only by a later state of its session (its tick), whichever writer is late, and removed only if it is
//       still the one that was looked at.
//   SessionIndex-5. A mark is dropped by others only when it is so old that no change can be under way under it.

import { createHash } from "node:crypto";
import { BoughError } from "../../base/errors.ts";
import { searchText } from "../../base/json.ts";
import { spaceOf } from "../../log/index.ts";
import type { Connection, Runner } from "./connection.ts";
import { fromFields, indexKey, toMap, unwire, wire } from "./keys.ts";
import { reader, writer } from "./script.ts";

/** A mark stays for this long after the last change, since most changes are followed by others. */
const restMs = 200;
/** A mark is renewed when it is used at this age, and others drop it at the second (SessionIndex-5). */
const renewMs = 60_000;
const forgottenMs = 600_000;
/** A change that was sent on a connection that broke may still be read by the server for this long. */
const strayMs = 5_000;

interface Mark {
  /** Its own, so that a removal which arrives late can't take a later mark away. */
  readonly name: string;
  /** Resolves when the server has it. */
  ready: Promise<unknown>;
  since: number;
  usedAt: number;
  /** Changes under way, and how many there have been. */
  busy: number;
  changes: number;
}

// ARGV: clock (not used: marks are about real time), mark.
const markScript = writer(`redis.call("ZADD", root .. ":marks", math.floor(micros() / 1000), ARGV[2]) return {"ok"}`, {
  repeatable: true,
  whenFull: true,
});

// ARGV: clock, age. Answers all marks, and as second list those that are older than that.
const marksScript = reader(`
local old = math.floor(micros() / 1000) - tonumber(ARGV[2])
return {redis.call("ZRANGE", root .. ":marks", 0, -1), redis.call("ZRANGE", root .. ":marks", "-inf", old, "BYSCORE")}`);

// What the index shows of a session: its tick, its last activity, whether it has claims and open branches, its metadata.
const stateScript = reader(`
local tick, active = unpack(redis.call("HMGET", root, "tick", "active"))
if not tick then return {} end
local fields, flat = {}, redis.call("HGETALL", root)
for i = 1, #flat, 2 do
  if string.sub(flat[i], 1, 2) == "m:" then
    fields[#fields + 1] = flat[i]
    fields[#fields + 1] = flat[i + 1]
  end
end
return {tick, active, redis.call("EXISTS", root .. ":claims"), redis.call("EXISTS", root .. ":open"), fields}`);

type State = [tick: string, active: string, claims: number, open: number, fields: string[]] | [];

const dropTermsLua = `
local function dropTerms(session, entry)
  for term in string.gmatch(entry, " (%x+)") do redis.call("SREM", root .. ":term:" .. term, session) end
end
`;

// ARGV: clock, session, tick, last activity, has claims, has open branches, terms. Activity is kept negative: Redis then sorts
// as listings do. Sessions with open branches all have the same score, so they are sorted by their ids.
const putScript = writer(
  `${dropTermsLua}
local session, entries = ARGV[2], root .. ":entries"
local old = redis.call("HGET", entries, session)
if old then
  if tonumber(string.match(old, "^%d+")) >= tonumber(ARGV[3]) then return {"ok"} end
  dropTerms(session, old)
end
local entry = {ARGV[3]}
for i = 7, #ARGV do
  redis.call("SADD", root .. ":term:" .. ARGV[i], session)
  entry[#entry + 1] = ARGV[i]
end
redis.call("HSET", entries, session, table.concat(entry, " "))
redis.call("ZADD", root .. ":active", -tonumber(ARGV[4]), session)
redis.call(ARGV[5] == "1" and "SADD" or "SREM", root .. ":claims", session)
if ARGV[6] == "1" then redis.call("ZADD", root .. ":open", 0, session) else redis.call("ZREM", root .. ":open", session) end
return {"ok"}`,
  { repeatable: true, whenFull: true },
);

// ARGV: clock, session, the entry that was looked at.
const dropScript = writer(
  `${dropTermsLua}
local session, entries = ARGV[2], root .. ":entries"
local entry = redis.call("HGET", entries, session)
if entry ~= ARGV[3] then return {"changed"} end
dropTerms(session, entry)
redis.call("HDEL", entries, session)
redis.call("ZREM", root .. ":active", session)
redis.call("SREM", root .. ":claims", session)
redis.call("ZREM", root .. ":open", session)
return {"ok"}`,
  { repeatable: true, whenFull: true },
);

// ARGV: clock, session. Its entry is from before any state, so that the next one replaces it.
const outdateScript = writer(
  `local entry = redis.call("HGET", root .. ":entries", ARGV[2])
if entry then redis.call("HSET", root .. ":entries", ARGV[2], (string.gsub(entry, "^%d+", "0"))) end
return {"ok"}`,
  { repeatable: true },
);

export class SessionIndex {
  readonly #redis: Connection;
  /** Names this handle in its marks. */
  readonly #handle: string;
  readonly #marks = new Map<string, Mark>();
  #named = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Connection, handle: string) {
    this.#redis = redis;
    this.#handle = handle;
  }

  /**
   * Makes a change of what the index shows of the session (SessionIndex-2). It is called at once, so that it can take what it needs
   * from its caller's objects; what it runs waits for the mark.
   */
  async changing<T>(sessionId: string, change: (redis: Runner) => Promise<T>): Promise<T> {
    const mark = this.#markOf(sessionId);
    mark.busy += 1;
    mark.changes += 1;
    try {
      const run: Runner["run"] = async (...call) => {
        await mark.ready;
        return this.#redis.run(...call);
      };
      const result = await change({ run });
      mark.usedAt = performance.now();
      return result;
    } catch (error) {
      mark.usedAt = performance.now() + (BoughError.is(error, "store_unavailable") ? strayMs : 0);
      throw error;
    } finally {
      mark.busy -= 1;
      this.#timer ??= this.#startTimer();
    }
  }

  /** Brings the entries of all marked sessions up to date (SessionIndex-3). */
  async catchUp(): Promise<string[]> {
    const [all, old] = await this.#redis.runOnIndex<[string[], string[]]>(marksScript, [forgottenMs]);
    const sessions = [...new Set(all.map((mark) => unwire(mark.slice(mark.indexOf(" ") + 1))))];
    await Promise.all(sessions.map((sessionId) => this.settle(sessionId)));
    if (old.length > 0) await this.#redis.command("ZREM", this.key("marks"), ...old);
    return sessions;
  }

  /** Makes the index show the session as it is; says whether the session is there. */
  async settle(sessionId: string): Promise<boolean> {
    const state = await this.#redis.run<State>(stateScript, sessionId, []);
    if (state.length === 0) return this.#settleGone(sessionId);
    const [tick, active, claims, open, fields] = state;
    const metadata = Object.entries(fromFields("m", toMap(fields)));
    const terms = new Set(metadata.map(([key, value]) => termOf(key, searchText(value))));
    if (spaceOf(sessionId) !== "") terms.add(spaceTermOf(spaceOf(sessionId)));
    await this.#redis.runOnIndex(putScript, [wire(sessionId), tick, active, claims, open, ...terms]);
    return true;
  }

  /** The sessions that may have claims. */
  async claimed(): Promise<string[]> {
    const marked = await this.catchUp();
    const claimed = await this.#redis.command<string[]>("SMEMBERS", this.key("claims"));
    return [...new Set([...marked, ...claimed.map(unwire)])];
  }

  /** For an index of an earlier format: what it shows of sessions in a space is brought up to date, its spaces included. */
  async noteSpaces(): Promise<void> {
    for (const sessionId of await this.known()) {
      if (spaceOf(sessionId) === "") continue;
      await this.#redis.runOnIndex(outdateScript, [wire(sessionId)]);
      await this.settle(sessionId);
    }
  }

  async has(sessionId: string): Promise<boolean> {
    return (await this.#redis.command<number>("HEXISTS", this.key("entries"), wire(sessionId))) === 1;
  }

  /** Every session the index knows. */
  async known(): Promise<string[]> {
    return (await this.#redis.command<string[]>("HKEYS", this.key("entries"))).map(unwire);
  }

  key(name: string): string {
    return `${indexKey(this.#redis.prefix)}:${name}`;
  }

  /** Settles what this handle changed and takes its marks away, as far as the server can be reached. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#unmarkQuiet(performance.now());
  }

  async #settleGone(sessionId: string): Promise<boolean> {
    const entry = await this.#redis.command<string | null>("HGET", this.key("entries"), wire(sessionId));
    if (entry === null) return false;
    const state = await this.#redis.run<State>(stateScript, sessionId, []);
    if (state.length > 0) return this.settle(sessionId);
    await this.#redis.runOnIndex(dropScript, [wire(sessionId), entry]);
    return false;
  }

  #markOf(sessionId: string): Mark {
    const now = performance.now();
    const known = this.#marks.get(sessionId);
    if (known && now - known.since <= renewMs) return known;
    const name = known?.name ?? `${this.#handle}.${this.#named++} ${wire(sessionId)}`;
    const ready = this.#redis.runOnIndex(markScript, [name]);
    const mark = Object.assign(known ?? { name, usedAt: now, busy: 0, changes: 0 }, { ready, since: now });
    this.#marks.set(sessionId, mark);
    // Callers that need the mark get the error from `ready`; the next one tries again.
    ready.catch(() => {
      mark.since = Number.NEGATIVE_INFINITY;
    });
    return mark;
  }

  #startTimer(): NodeJS.Timeout {
    return setTimeout(() => void this.#rest(), restMs).unref();
  }

  /** Takes the marks of sessions that are quiet away. */
  async #rest(): Promise<void> {
    await this.#unmarkQuiet(performance.now() - restMs);
    this.#timer = this.#marks.size > 0 ? this.#startTimer() : undefined;
  }

  async #unmarkQuiet(since: number): Promise<void> {
    const quiet = [...this.#marks].filter(([, { busy, usedAt }]) => busy === 0 && usedAt <= since);
    await Promise.allSettled(quiet.map(([sessionId]) => this.#unmark(sessionId)));
  }

  async #unmark(sessionId: string): Promise<void> {
    const mark = this.#marks.get(sessionId)!;
    const { changes } = mark;
    await this.settle(sessionId);
    if (mark.busy > 0 || mark.changes !== changes) return;
    this.#marks.delete(sessionId);
    await this.#redis.command("ZREM", this.key("marks"), mark.name);
  }
}

/** The term that all sessions of a space have; not one of any key. */
export function spaceTermOf(space: string): string {
  return createHash("sha1")
    .update(JSON.stringify([space]))
    .digest("hex");
}

/** What a key and its text are called in the index; a clash is harmless (SessionIndex-1). */
export function termOf(key: string, text: string): string {
  return createHash("sha1")
    .update(JSON.stringify([key, text]))
    .digest("hex");
}
