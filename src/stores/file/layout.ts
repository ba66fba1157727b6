// Where everything lies, relative to the store's directory; always with "/", because these paths are written into the
// redo log.

export const formatVersion = 1;

export const paths = {
  identity: "bough.json",
  lock: "lock",
  wal: "wal",
  sessions: "sessions",
  /** Content on its way in: whole and on the disk, not yet referred to. */
  incoming: "incoming",
  /** Removed trees, until their files are gone. */
  trash: "trash",
} as const;

/** There from the first opening on. */
export const standingDirectories = [paths.wal, paths.sessions, paths.incoming, paths.trash];

export const inSession = {
  document: (session: string) => `${session}/session.json`,
  branches: (session: string) => `${session}/branches`,
  content: (session: string) => `${session}/content.jsonl`,
  assets: (session: string) => `${session}/assets`,
  claims: (session: string) => `${session}/uncommitted`,
  claim: (session: string, branchName: string) => `${session}/uncommitted/${branchName}.json`,
};

export const inBranch = {
  snapshot: (branch: string) => `${branch}/branch.json`,
  log: (branch: string) => `${branch}/events.jsonl`,
  checkpoints: (branch: string) => `${branch}/checkpoints.jsonl`,
  segments: (branch: string) => `${branch}/segments`,
};

export const temporarySuffix = ".tmp";
