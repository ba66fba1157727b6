// Which branches were looked at in this browser, newest last: where a session opens, and which of several branches a version means.

const key = "bough.visits";
const mostSessions = 50;
const mostBranches = 200;

type Visits = Record<string, readonly string[]>;

export function noteVisit(sessionId: string, branchId: string): void {
  const { [sessionId]: before = [], ...others } = read();
  if (before.at(-1) === branchId) return;
  const branches = [...before.filter((id) => id !== branchId), branchId].slice(-mostBranches);
  const kept = Object.entries(others).slice(1 - mostSessions);
  try {
    localStorage.setItem(key, JSON.stringify(Object.fromEntries([...kept, [sessionId, branches]])));
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
