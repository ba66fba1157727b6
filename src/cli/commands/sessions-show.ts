import { moment, visible } from "../../chat/text.ts";
import { openSessions, type PlacedBranch } from "../../sessions/index.ts";
import { defineCommand, jsonArg, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { printTable, toJson } from "../terminal.ts";

export const sessionsShow = defineCommand({
  args: {
    session: { type: "positional", valueHint: "SESSION", required: true, description: "the session's id" },
    all: { type: "boolean", description: "include hidden branches, such as those of subagents" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["sessions show user-123", "sessions show user-123 --all", "sessions show user-123 --json"],
  async run({ args, terminal }) {
    const { session, branches } = await withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const session = await sessions.getSession(args.session);
      const visibility = args.all ? "all" : "shown";
      return { session, branches: await sessions.listBranches(session.id, { visibility }) };
    });
    if (args.json) {
      terminal.print(toJson({ ...session, branches }));
      return 0;
    }
    terminal.print(`${terminal.paint("bold", visible(session.id))}  version ${session.version}`);
    terminal.print(`created ${moment(session.createdAt)}, last activity ${moment(session.lastActivity)}`);
    terminal.print(`metadata ${visible(JSON.stringify(session.metadata))}`);
    terminal.print(`state    ${visible(JSON.stringify(session.state))}\n`);
    const rows = inTree(branches).map(({ branch, depth }) => [
      `${"  ".repeat(depth)}${branch.id}`,
      branch.messageCount,
      branch.seq,
      branch.fork ? String(branch.fork.forkedAtSeq) : "",
      moment(branch.lastActivity),
      notesOn(branch),
    ]);
    printTable(terminal, ["BRANCH", "MESSAGES", "SEQ", "FORKED AT", "LAST ACTIVITY", ""], rows);
    return 0;
  },
});

function notesOn({ openTurnId, owner, visibility }: PlacedBranch): string {
  const notes = [
    ...(openTurnId === undefined ? [] : ["a turn is open"]),
    ...(owner ? [`${visibility ?? "shown"}, ${owner.kind} of ${owner.branchId}`] : []),
  ];
  return notes.join("; ");
}

/** Forks are listed below the branch they were forked from. */
function inTree(branches: readonly PlacedBranch[]): { branch: PlacedBranch; depth: number }[] {
  const byId = new Map(branches.map((branch) => [branch.id, branch]));
  const below = (ids: readonly string[], depth: number): { branch: PlacedBranch; depth: number }[] =>
    ids.flatMap((id) => {
      const branch = byId.get(id)!;
      return [{ branch, depth }, ...below(branch.children, depth + 1)];
    });
  const forks = new Set(branches.flatMap(({ children }) => children));
  const roots = branches.map(({ id }) => id).filter((id) => !forks.has(id));
  return below(roots, 0);
}
