import { openSessions, type PlacedBranch } from "../../sessions/index.ts";
import { defineCommand, jsonArg, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { moment, printTable, toJson, visible } from "../terminal.ts";

export const sessionsShow = defineCommand({
  args: {
    session: { type: "positional", valueHint: "SESSION", required: true, description: "its id" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["sessions show user-123", "sessions show user-123 --json"],
  async run({ args, terminal }) {
    const { session, branches } = await withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      const session = await sessions.getSession(args.session);
      return { session, branches: await sessions.listBranches(session.id) };
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
      branch.openTurnId === undefined ? "" : "a turn is open",
    ]);
    printTable(terminal, ["BRANCH", "MESSAGES", "SEQ", "FORKED AT", "LAST ACTIVITY", ""], rows);
    return 0;
  },
});

/** Forks below the branch they came from. */
function inTree(branches: readonly PlacedBranch[]): { branch: PlacedBranch; depth: number }[] {
  const below = (parent: string | undefined, depth: number): { branch: PlacedBranch; depth: number }[] =>
    branches
      .filter((branch) => branch.fork?.forkedFrom === parent)
      .flatMap((branch) => [{ branch, depth }, ...below(branch.id, depth + 1)]);
  return below(undefined, 0);
}
