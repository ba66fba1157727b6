// Which sessions and branches are there: those acknowledged and not removed, none that was removed, none that nobody made.

import { isAcked } from "../kit/lives.mjs";

/**
 * Matches what is in the store with the lives of the history; returns the pairs of those that are there, as
 * { sessions: [{ life, shown }], branches: [{ life, shown, parent }] }.
 */
export function matchLives(lives, snapshot, report) {
  const found = { sessions: [], branches: [] };
  for (const shown of snapshot.sessions) matchSession(lives, shown, found, report);
  const there = new Set([...found.sessions, ...found.branches].map(({ life }) => life));
  for (const sessions of lives.sessions.values()) {
    for (const session of sessions) reportLostSession(session, there, report);
  }
  checkSessionOrder(snapshot, report);
  return found;
}

function matchSession(lives, shown, found, report) {
  const { id } = shown.record;
  const main = shown.branches.find(({ record }) => record.branchId === "main");
  if (!main) return report("lost", `session ${id} has no branch "main"`);
  const life = lives.sessionBornWith(id, main.events[0]?.id);
  if (!life) return report("unintended", `session ${id} is there, and nobody made it as it is`);
  if (life.isGone) return report("wrong", `session ${id} is there again after its removal was acknowledged`);
  found.sessions.push({ life, shown });
  const before = found.branches.length;
  for (const branch of shown.branches) matchBranch(life, branch, found, report);
  const mine = found.branches.slice(before);
  for (const each of mine) each.parent = parentOf(each, mine, report);
  checkBranchOrder(mine, report);
}

function matchBranch(session, shown, found, report) {
  const { branchId, parent } = shown.record;
  const name = `${session.id}/${branchId}`;
  const firstFact = shown.events[parent?.seq ?? 0]?.id;
  const life = session.branches.get(branchId)?.find(({ facts }) => facts[0].id === firstFact);
  if (!life)
    return report("unintended", `branch ${name} is there, and nobody made it as it is (begins with ${firstFact})`);
  if (life.isGone) return report("wrong", `branch ${name} is there again after its removal was acknowledged`);
  found.branches.push({ life, shown });
}

function parentOf({ life, shown }, branches, report) {
  const { parent } = shown.record;
  if (parent?.branchId !== life.parent?.branchId || parent?.seq !== life.parent?.seq) {
    report("wrong", `branch ${life.name} has the parent ${JSON.stringify(parent)}, not ${JSON.stringify(life.parent)}`);
  }
  if (!parent) return undefined;
  const found = branches.find((each) => each.life.id === parent.branchId);
  if (!found) report("lost", `branch ${life.name} is there without its parent ${parent.branchId}`);
  return found;
}

function reportLostSession(session, there, report) {
  if (!there.has(session)) {
    const excused = session.isGone || !isAcked(session.birth) || session.deletes.length > 0;
    if (!excused) report("lost", `session ${session.id} was acknowledged and is not there`);
    return;
  }
  for (const branches of session.branches.values()) {
    for (const branch of branches) {
      const excused = branch.isGone || !isAcked(branch.birth) || wasRemovedWith(branch, there);
      if (!there.has(branch) && !excused) report("lost", `branch ${branch.name} was acknowledged and is not there`);
    }
  }
}

/** A removal of unknown outcome, of the branch or of one it comes from, that took this branch with everything else. */
function wasRemovedWith(branch, there) {
  if (branch.deletes.length > 0) return true;
  const { parent, session } = branch;
  // Named with another that is gone: they go in one step, so while that one is there this one must be.
  const isNamed = ({ also = [], line }) => also.includes(branch.id) && line >= branch.birth.line;
  const gone = [...session.branches.values()].flat().filter((life) => !there.has(life));
  if (gone.some((life) => life.deletes.some(isNamed))) return true;
  if (!parent) return false;
  const isEarlier = (life) => life !== branch && life.birth.line <= branch.birth.line;
  // A fork under its parent's own id, refused if it had been answered, is a life of that id, too.
  const lives = (session.branches.get(parent.branchId) ?? []).filter(isEarlier);
  return lives.some((life) => !there.has(life) && (life.deletes.some(isRecursive) || wasRemovedWith(life, there)));
}

function isRecursive({ recursive }) {
  return recursive;
}

function checkSessionOrder({ sessions }, report) {
  for (let i = 1; i < sessions.length; i++) {
    if (sessions[i - 1].record.activeAt < sessions[i].record.activeAt) {
      report("wrong", `session ${sessions[i].record.id} is listed after one that was active before it`);
    }
  }
}

/** Branches are listed in the order of their creation: none stands before one that was complete when it was begun. */
function checkBranchOrder(branches, report) {
  let begun = -1;
  for (const { life } of branches) {
    if (life.birth.end < begun) report("wrong", `branch ${life.name} is listed after one that was made later`);
    begun = Math.max(begun, life.birth.line);
  }
}
