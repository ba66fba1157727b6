// Named places around every durable step where a test can kill or fail the process. Off, a failpoint is one comparison.
// Armed by the environment before the process starts: BOUGH_FAILPOINT="file.wal.synced:3" kills at the third pass.

/** Every failpoint there is; the crash tests walk this list, so none can be forgotten. */
export const failpoints = [
  "file.wal.beforeWrite",
  "file.wal.halfWritten",
  "file.wal.written",
  "file.wal.synced",
  "file.apply.before",
  "file.apply.between",
  "file.apply.done",
  "file.spare.written",
  "file.checkpoint.before",
  "file.checkpoint.synced",
  "file.checkpoint.done",
  "file.replace.written",
  "file.replace.synced",
  "file.replace.renamed",
  "sqlite.commit.begun",
  "sqlite.commit.written",
  "sqlite.commit.done",
  "sqlite.migrate.statement",
  "sqlite.migrate.done",
  "content.chunk",
  "content.finish",
  "content.row",
  "run.turn.begun",
  "run.reply.written",
  "run.tool.started",
  "run.tool.executed",
  "run.result.written",
  "run.child.created",
  "run.child.begun",
  "run.child.ended",
  "run.task.started",
  "run.task.ended",
  "run.task.delivered",
  "run.handed",
  "run.compaction.summarised",
  "run.compaction.written",
  "run.step.started",
  "run.step.executed",
  "run.step.written",
  "run.step.asleep",
  "run.input.queued",
  "run.input.taken",
  "run.turn.closing",
  "run.turn.closed",
] as const;

export type Failpoint = (typeof failpoints)[number];

const armed = globalThis.process?.env?.BOUGH_FAILPOINT?.split(":");
let passesLeft = Number(armed?.[1] ?? 1);

/** Dies here, with SIGKILL, when a test armed this name. */
export function failpoint(name: Failpoint): void {
  if (armed === undefined || armed[0] !== name) return;
  if (--passesLeft === 0) process.kill(process.pid, "SIGKILL");
}
