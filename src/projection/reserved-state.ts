// Keys of a branch's state that are Bough's own. Declared state begins with "@" too, and may not take them.

/** The pinned messages, each with its position. */
export const pinsKey = "@pins";

export const reservedState: ReadonlySet<string> = new Set([pinsKey]);
