// Whose a file is. What another user could have put there or could change is neither executed nor written to.

export interface Ownership {
  readonly uid: number;
  readonly mode: number;
}

const writableByAll = 0o002;

/**
 * Why a file or directory can't be trusted, to follow its name in a sentence; undefined when it can. Root is trusted: it can
 * do everything anyway. Systems without user ids (Windows) have nothing to compare.
 */
export function whyForeign({ uid, mode }: Ownership, ownUid = process.getuid?.()): string | undefined {
  if (ownUid === undefined) return undefined;
  if (uid !== ownUid && uid !== 0) return `belongs to another user (uid ${uid}, this process has ${ownUid})`;
  if ((mode & writableByAll) !== 0) return "can be written by every user of this machine";
  return undefined;
}
