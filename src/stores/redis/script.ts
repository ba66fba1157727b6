// One Lua script is one atomic operation. It decides first and writes afterwards, so what it refuses has changed nothing.
//
//   Script-1. A script touches keys of KEYS[1]'s hash tag only, which is that of one session, or that of the index.
//   Script-2. Time is the server's (TIME); ARGV[1] is empty, except in tests that move time by a clock of their own.
//   Script-3. JSON is never decoded here: numbers and empty lists would not come back the same.

import { createHash } from "node:crypto";

export interface Script {
  readonly text: string;
  readonly sha: string;
  /** Whether it may run again after its answer was lost: the second time it changes nothing and answers the same. */
  readonly repeatable: boolean;
}

const prelude = `
local root = KEYS[1]
local function key(kind, no) return root .. ":" .. kind .. ":" .. no end
local function find(id) return redis.call("HGET", root .. ":branches", id) end
local moment
local function micros()
  moment = moment or redis.call("TIME")
  return moment[1] * 1000000 + moment[2]
end
local function clock() return tonumber(ARGV[1]) or math.floor(micros() / 1000) end
-- Grows with every call, also over the end of the session: a session created again under its id goes on by the clock.
local function tick()
  local last = tonumber(redis.call("HGET", root, "tick")) or 0
  return math.max(last + 1, micros())
end
local function touch(now, ticked) redis.call("HSET", root, "active", now, "tick", ticked) end
-- Only a hint (watch.ts): a user who may not publish must not find what was written called a failure.
local function tell(id) redis.pcall("PUBLISH", root .. ":news:" .. id, "") end
-- Lua can't pass more than a few thousand arguments at once.
local function each(command, target, from, count, list)
  for i = from, from + count - 1, 1000 do
    redis.call(command, target, unpack(list or ARGV, i, math.min(i + 999, from + count - 1)))
  end
end
`;

function make(flags: string, body: string, repeatable: boolean): Script {
  const text = `#!lua${flags}\n${prelude}\n${body}`;
  return { text, sha: createHash("sha1").update(text).digest("hex"), repeatable };
}

/** A script that writes nothing. */
export function reader(body: string): Script {
  return make(" flags=no-writes", body, true);
}

export function writer(body: string, options: { repeatable?: boolean; whenFull?: boolean } = {}): Script {
  return make(options.whenFull ? " flags=allow-oom" : "", body, options.repeatable ?? false);
}
