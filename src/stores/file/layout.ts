// Where everything lies, relative to the store's directory; always with "/", because these paths are written into the
// redo log. Names of sessions and branches are ids as names.ts writes them.
//
//   bough.json                             which format this is, and how often it was opened
//   lock                                   held by the process that owns the directory
//   wal/{number}.log                       the redo log; empty after a clean close
//   incoming/ trash/                       content on its way in, trees on their way out
//   sessions/{session}/session.json        metadata, state, version, last activity
//                      content.jsonl       which branch refers to which content
//                      assets/{sha256}     the bytes of content
//                      uncommitted/{branch}.json     the claim of its run slot, while there is one
//                      branches/{branch}/events.jsonl          the log: one checksummed line a fact
//                                        branch.json           a snapshot of header and index, so that no load reads it all
//                                        checkpoints.jsonl
//                                        segments/{to}-{crc}.jsonl

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

export const contentFile = "content.jsonl";
export const claimsDirectory = "uncommitted";

export const inSession = {
  document: (session: string) => `${session}/session.json`,
  branches: (session: string) => `${session}/branches`,
  content: (session: string) => `${session}/${contentFile}`,
  assets: (session: string) => `${session}/assets`,
  claims: (session: string) => `${session}/${claimsDirectory}`,
  claim: (session: string, branchName: string) => `${session}/${claimsDirectory}/${branchName}.json`,
};

export const inBranch = {
  snapshot: (branch: string) => `${branch}/branch.json`,
  log: (branch: string) => `${branch}/events.jsonl`,
  checkpoints: (branch: string) => `${branch}/checkpoints.jsonl`,
  segments: (branch: string) => `${branch}/segments`,
};

export const temporarySuffix = ".tmp";
