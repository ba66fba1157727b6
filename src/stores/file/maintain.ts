// maintain(): reads every line of every log, removes remains of crashes, and reports what it found. Each stretch runs
// while nothing is in flight; between stretches other operations go on.

import { BoughError } from "../../base/errors.ts";
import type { MaintenanceReport, StoreProblem } from "../../log/index.ts";
import { checkpointsOf } from "./checkpoints.ts";
import { readAsset, referredContent } from "./content.ts";
import { Flaw } from "./facts.ts";
import { breathe } from "./files.ts";
import { inBranch, inSession, paths, temporarySuffix } from "./layout.ts";
import { isName, nameOf } from "./names.ts";
import { judged } from "./own-log.ts";
import { cleanSegments } from "./segments.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState, SessionState, StoredContent } from "./state.ts";

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
    const path = `${paths.sessions}/${name}`;
    const [branches, assets] = await look(() => inspectSession(sessions, name, findings));
    for (const asset of assets) await verifyAsset(sessions, path, asset, findings);
    for (const branchName of branches) {
      const branch = await look(() => inspectBranch(sessions, name, branchName, findings));
      if (branch) await verifyLog(sessions, branch, findings);
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
    findings.problems.push({ code: "orphan", detail: `${disk.absolute(path)} was not referenced; removed.` });
  }
}

/** The names of its branches, and its content. */
function inspectSession(sessions: Sessions, name: string, findings: Findings): [string[], StoredContent[]] {
  if (!sessions.names.has(name)) return [[], []];
  sessions.shrink();
  findings.sessions += 1;
  try {
    const session = sessions.loadByPath(`${paths.sessions}/${name}`);
    removeStray(sessions, session, findings);
    if (session.content.damage) findings.problems.push(asProblem(session.content.damage));
    return [[...session.branchNames.keys()], [...referredContent(session).values()]];
  } catch (error) {
    findings.problems.push(asProblem(error));
    return [[], []];
  }
}

/** Files that nothing refers to. */
function removeStray({ disk }: Sessions, session: SessionState, findings: Findings): void {
  const used = new Set([...referredContent(session).keys()].map(nameOf));
  const assets = inSession.assets(session.path);
  const stray = session.content.damage ? [] : disk.list(assets).filter((name) => isName(name) && !used.has(name));
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

async function verifyAsset(sessions: Sessions, path: string, stored: StoredContent, findings: Findings): Promise<void> {
  try {
    for await (const _ of readAsset(sessions.disk, path, stored, { from: 0, to: stored.record.size }));
  } catch (error) {
    // It may have been deleted meanwhile.
    const session = sessions.names.has(path.slice(paths.sessions.length + 1)) ? sessions.loadByPath(path) : undefined;
    if (session && referredContent(session).has(stored.record.id)) findings.problems.push(asProblem(error));
  }
}

function inspectBranch(
  sessions: Sessions,
  sessionName: string,
  name: string,
  findings: Findings,
): BranchState | undefined {
  const path = `${paths.sessions}/${sessionName}`;
  const session = sessions.names.has(sessionName) ? sessions.loadByPath(path) : undefined;
  if (!session?.branchNames.has(name)) return undefined;
  findings.branches += 1;
  try {
    const branch = sessions.loadByName(session, name);
    findings.events += branch.record.seq - (branch.record.parent?.seq ?? 0);
    if (branch.damage) throw branch.damage.error;
    checkpointsOf(sessions, branch);
    for (const stray of cleanSegments(sessions, branch)) {
      const { sessionId, branchId } = branch.record;
      const detail = `${sessions.disk.absolute(inBranch.segments(branch.path))}/${stray} was incomplete; removed.`;
      findings.problems.push({ code: "orphan", detail, sessionId, branchId });
    }
    return branch;
  } catch (error) {
    findings.problems.push(asProblem(error));
    return undefined;
  }
}

const linesAtOnce = 2000;

async function verifyLog(sessions: Sessions, branch: BranchState, findings: Findings): Promise<void> {
  const { log } = branch;
  const lines = log.lines(log.end.offset);
  try {
    for (let read = 1; lines.step(); read++) if (read % linesAtOnce === 0) await breathe();
  } catch (error) {
    if (!(error instanceof Flaw)) throw error;
    // It may have been deleted meanwhile.
    if (sessions.findBranch(branch.record)?.order !== branch.order) return;
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
