// maintain(): reads every line of every log, removes what crashes left behind, and says what it found. Each stretch runs
// while nothing is in flight; between stretches everybody else goes on.

import { BoughError } from "../../base/errors.ts";
import type { MaintenanceReport, StoreProblem } from "../../log/index.ts";
import { Flaw } from "./branch-log.ts";
import { checkpointsOf } from "./checkpoints.ts";
import { assetPath, readAsset, referredContent } from "./content.ts";
import { breathe } from "./files.ts";
import { inBranch, inSession, paths, temporarySuffix } from "./layout.ts";
import { nameOf } from "./names.ts";
import { judged } from "./own-log.ts";
import { cleanSegments } from "./segments.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState, SessionState } from "./state.ts";

type Look = <T>(see: () => T) => Promise<T>;

interface Findings {
  sessions: number;
  branches: number;
  events: number;
  readonly problems: StoreProblem[];
}

/** `isIncoming` tells content on its way in from what a crash left. */
export async function maintain(
  sessions: Sessions,
  look: Look,
  isIncoming: (path: string) => boolean,
): Promise<MaintenanceReport> {
  const findings: Findings = { sessions: 0, branches: 0, events: 0, problems: [] };
  await look(() => cleanIncoming(sessions, isIncoming, findings));
  for (const name of await look(() => [...sessions.names])) {
    const session = await look(() => inspectSession(sessions, name, findings));
    if (!session) continue;
    for (const branchName of await look(() => [...session.branchNames.keys()])) {
      const branch = await look(() => inspectBranch(sessions, session, branchName, findings));
      if (branch) await verifyLog(branch, findings);
    }
  }
  findings.problems.unshift(...sessions.problems.splice(0));
  return findings;
}

function cleanIncoming({ disk }: Sessions, isIncoming: (path: string) => boolean, findings: Findings): void {
  for (const name of disk.list(paths.incoming)) {
    const path = `${paths.incoming}/${name}`;
    if (isIncoming(path) || disk.isLinked(path)) continue;
    disk.remove(path);
    findings.problems.push({ code: "orphan", detail: `${disk.absolute(path)} was never referred to; removed.` });
  }
}

function inspectSession(sessions: Sessions, name: string, findings: Findings): SessionState | undefined {
  if (!sessions.names.has(name)) return undefined;
  findings.sessions += 1;
  try {
    const session = sessions.loadByPath(`${paths.sessions}/${name}`);
    removeStray(sessions, session, findings);
    if (session.content.damage) throw session.content.damage;
    checkAssets(sessions, session, findings);
    return session;
  } catch (error) {
    findings.problems.push(asProblem(error));
    return undefined;
  }
}

/** Files that nothing refers to. */
function removeStray({ disk }: Sessions, session: SessionState, findings: Findings): void {
  const used = new Set([...referredContent(session).keys()].map(nameOf));
  const assets = inSession.assets(session.path);
  const stray = session.content.damage ? [] : disk.list(assets).filter((name) => !used.has(name));
  const temporary = disk.list(session.path).filter((name) => name.endsWith(temporarySuffix));
  for (const path of [
    ...stray.map((name) => `${assets}/${name}`),
    ...temporary.map((name) => `${session.path}/${name}`),
  ]) {
    disk.remove(path);
    const sessionId = session.record.id;
    findings.problems.push({ code: "orphan", detail: `${disk.absolute(path)} was not used; removed.`, sessionId });
  }
}

function checkAssets(sessions: Sessions, session: SessionState, findings: Findings): void {
  const present = new Set(sessions.disk.list(inSession.assets(session.path)));
  for (const [id, stored] of referredContent(session)) {
    const sessionId = session.record.id;
    const where = sessions.disk.absolute(assetPath(session, id));
    if (!present.has(nameOf(id))) {
      findings.problems.push({ code: "corrupt", detail: `${where} is missing.`, sessionId });
      continue;
    }
    try {
      readAsset(sessions, session, stored);
    } catch (error) {
      findings.problems.push(asProblem(error));
    }
  }
}

function inspectBranch(
  sessions: Sessions,
  session: SessionState,
  name: string,
  findings: Findings,
): BranchState | undefined {
  if (!session.branchNames.has(name)) return undefined;
  findings.branches += 1;
  try {
    const branch = sessions.loadByName(session, name);
    findings.events += branch.record.seq - (branch.record.parent?.seq ?? 0);
    if (branch.damage) throw branch.damage.error;
    checkpointsOf(sessions, branch);
    for (const stray of cleanSegments(sessions, branch)) {
      const { sessionId, branchId } = branch.record;
      const detail = `${sessions.disk.absolute(inBranch.segments(branch.path))}/${stray} was not whole; removed.`;
      findings.problems.push({ code: "orphan", detail, sessionId, branchId });
    }
    return branch;
  } catch (error) {
    findings.problems.push(asProblem(error));
    return undefined;
  }
}

const linesAtOnce = 2000;

async function verifyLog(branch: BranchState, findings: Findings): Promise<void> {
  const { log } = branch;
  let lines = 0;
  try {
    for (const _ of log.lines(log.points[0]!, log.end.offset)) if (++lines % linesAtOnce === 0) await breathe();
  } catch (error) {
    if (!branch.session.branches.has(branch.record.branchId)) return;
    if (!(error instanceof Flaw)) throw error;
    findings.problems.push(asProblem(judged(branch, error)));
  }
}

function asProblem(error: unknown): StoreProblem {
  if (!BoughError.is(error, "store_corrupt")) throw error;
  const { sessionId, branchId } = error.data as { sessionId?: string; branchId?: string };
  return {
    code: "corrupt",
    detail: error.message,
    ...(sessionId !== undefined && { sessionId }),
    ...(branchId !== undefined && { branchId }),
  };
}
