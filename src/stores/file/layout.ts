// Where everything lies, relative to the store's directory; always with "/", because these paths are written into the
// redo log. Names of sessions and branches are ids as names.ts writes them.
//
//   bough.json                             which format this is, and how often it was opened
//   lock                                   held by the process that owns the directory
//   wal/{number}.log                       the redo log; empty after a clean close
//   incoming/ trash/                       content on its way in, trees on their way out
//   spare/                                 files without a use, while the store is open (passing-files.ts)
//   sessions/{session}/session.json        metadata, state, version, last activity
//                      content.jsonl       which branch refers to which content
//                      assets/{sha256}     the bytes of content
//                      uncommitted/{branch}.json     while a turn is open or its run slot is held: that turn, who holds it
//                      branches/{branch}/events.jsonl          the log: a line a fact
//                                        branch.json           the header, where the messages are, and an index of the log
//                                        checkpoints.jsonl
//                                        segments/{to}-{crc}.jsonl   messages, ready to be loaded
//
// A .json file is one JSON object (seal.ts), a .jsonl file has one JSON value a line (lines.ts). Only the redo log has a form
// of its own.

/** 1 had logs of tab-separated columns; no release wrote it. */
export const formatVersion = 2;

export const paths = {
  identity: "bough.json",
  lock: "lock",
  wal: "wal",
  sessions: "sessions",
  /** Content on its way in: whole and on the disk, not yet referred to. */
  incoming: "incoming",
  /** Removed trees, until their files are gone. */
  trash: "trash",
  /** Files without a use (passing-files.ts). */
  spare: "spare",
} as const;

/** There from the first opening on. */
export const standingDirectories = [paths.wal, paths.sessions, paths.incoming, paths.trash, paths.spare];

export const contentFile = "content.jsonl";
export const uncommittedDirectory = "uncommitted";

export const inSession = {
  document: (session: string) => `${session}/session.json`,
  branches: (session: string) => `${session}/branches`,
  content: (session: string) => `${session}/${contentFile}`,
  assets: (session: string) => `${session}/assets`,
  uncommitted: (session: string) => `${session}/${uncommittedDirectory}`,
  uncommittedOf: (session: string, branchName: string) => `${session}/${uncommittedDirectory}/${branchName}.json`,
};

export const logFile = "events.jsonl";
export const segmentsDirectory = "segments";

export const inBranch = {
  document: (branch: string) => `${branch}/branch.json`,
  log: (branch: string) => `${branch}/${logFile}`,
  checkpoints: (branch: string) => `${branch}/checkpoints.jsonl`,
  segments: (branch: string) => `${branch}/${segmentsDirectory}`,
};

export const temporarySuffix = ".tmp";
