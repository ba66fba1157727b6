// Where children may work. What can't be meant is refused when a subagent is built, or else when a call spawns it.

import { BoughError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import {
  anything,
  checkOptions,
  isObject,
  type OptionCheck,
  object,
  oneOf,
  optionTable,
  text,
} from "../../base/options.ts";
import type { SpawnLimits, SpawnOptions } from "../../tools/index.ts";

const session: OptionCheck = {
  fits: (value) => value === "parent" || value === "new" || (isObject(value) && typeof value.shared === "string"),
  wanted: '"parent", "new" or { shared: id }',
};
const branch: OptionCheck = {
  fits: (value) => value === "fork" || value === "fresh" || (isObject(value) && typeof value.existing === "string"),
  wanted: '"fork", "fresh" or { existing: id }',
};

const notify: OptionCheck = {
  fits: (value) => typeof value === "function" || ["completed", "failed", "all", "none"].some((rule) => rule === value),
  wanted: '"completed", "failed", "all", "none" or a function of the end',
};

/** The options of a child, as `subagent` and `context.spawn` take them. */
export const spawnChecks = {
  key: text,
  session,
  branch,
  memory: oneOf("call", "branch"),
  prompt: oneOf("own", "parent"),
  mode: oneOf("wait", "background"),
  notify,
  compaction: anything,
  output: anything,
  limits: object,
  context: anything,
  metadata: object,
} as const;

const spawnTable = optionTable<SpawnOptions>(spawnChecks);
const limitsTable = optionTable<SpawnLimits>({ iterations: anything, tokens: anything, turnMs: anything });

export function checkSpawn(options: SpawnOptions): void {
  checkOptions("The options of spawn", options, spawnTable);
  checkPolicy(options);
}

/** Refuses combinations that mean nothing, each with a sentence. */
export function checkPolicy(options: SpawnOptions): void {
  const { session = "parent", branch, memory = "call", compaction, limits, prompt } = options;
  const isFork = branch === undefined ? session === "parent" : branch === "fork";
  if (branch === "fork" && session !== "parent") {
    throw unfit('branch: "fork" needs session: "parent": only the parent\'s session has the branch to fork.');
  }
  if (isObject(branch) && session === "new") {
    throw unfit('branch: { existing } does not go with session: "new": a new session has no such branch.');
  }
  if (compaction !== undefined && !isFork) {
    throw unfit('compaction needs branch: "fork": any other child does not begin with the parent\'s history.');
  }
  if (prompt === "parent" && !isFork) {
    throw unfit('prompt: "parent" needs branch: "fork": any other child does not begin with the parent\'s history.');
  }
  if (memory === "branch" && isObject(branch)) {
    throw unfit('memory: "branch" does not go with branch: { existing }: such a branch remembers anyway.');
  }
  if (memory === "branch" && session === "new") {
    throw unfit(
      'memory: "branch" does not go with session: "new": use session: { shared } to name a session that lasts.',
    );
  }
  checkMode(options);
  if (isObject(session)) checkId(session.shared, "session");
  if (isObject(branch)) checkId(branch.existing, "branch");
  if (limits !== undefined) checkOptions("The limits of a child", limits, limitsTable, "limits.");
}

/** What goes on in the background can't wait for a branch that others use as well. */
function checkMode({ mode = "wait", branch, memory, notify }: SpawnOptions): void {
  if (mode === "wait") {
    if (notify !== undefined)
      throw unfit('notify needs mode: "background": a child that is waited for gives its result.');
    return;
  }
  if (isObject(branch)) {
    throw unfit(
      'mode: "background" does not go with branch: { existing }: a background child has a branch of its own.',
    );
  }
  if (memory === "branch") {
    throw unfit('mode: "background" does not go with memory: "branch": a background child has a branch of its own.');
  }
}

/** The policy with what follows from its other half: outside of the parent's session there is nothing to fork. */
export function resolvePolicy(options: SpawnOptions): Required<Pick<SpawnOptions, "session" | "branch" | "memory">> {
  const { session = "parent", branch = session === "parent" ? "fork" : "fresh", memory = "call" } = options;
  return { session, branch, memory };
}

function unfit(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
