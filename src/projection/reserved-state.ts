// Keys of a branch's state that are Bough's own. Declared state begins with "@" too, and may not take them.

/** The pinned messages, each with its position. */
export const pinsKey = "@pins";

/** How often automatic compaction failed in a row. */
const failuresKey = "@compaction";

/** How many bytes of files a call may carry, after a provider has refused more. */
const fileBudgetKey = "@file-budget";

/** The path to the agent that turns begin with, after a handoff that stays. */
export const agentKey = "@agent";

export const reservedState: ReadonlySet<string> = new Set([pinsKey, failuresKey, fileBudgetKey, agentKey]);
