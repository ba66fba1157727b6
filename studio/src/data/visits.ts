// Which branches were looked at in this browser, newest last: where a session opens, and which of several branches a version means.

const key = "bough.visits";
const mostSessions = 50;
const mostBranches = 200;

type Visits = Record<string, readonly string[]>;

export function noteVisit(sessionId: string, branchId: string): void {
  const { [sessionId]: before = [], ...others } = read();
  if (before.at(-1) === branchId) return;
  const branches = [...before.filter((id) => id !== branchId), branchId].slice(-mostBranches);
  keep({ ...Object.fromEntries(Object.entries(others).slice(1 - mostSessions)), [sessionId]: branches });
}

/** A branch that is gone is nowhere to open a session at. */
export function forgetVisit(sessionId: string, branchId: string): void {
  const all = read();
  keep({ ...all, [sessionId]: (all[sessionId] ?? []).filter((id) => id !== branchId) });
}

function keep(visits: Visits): void {
  try {
    localStorage.setItem(key, JSON.stringify(visits));
  } catch {
    // A browser that keeps nothing opens sessions at "main".
  }
}

/** The branches of a session that were looked at, newest last. */
export function visitsOf(sessionId: string): readonly string[] {
  return read()[sessionId] ?? [];
}

function read(): Visits {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Visits) : {};
  } catch {
    return {};
  }
}
