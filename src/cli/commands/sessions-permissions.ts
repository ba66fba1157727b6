import { moment, visible } from "../../chat/text.ts";
import { openSessions } from "../../sessions/index.ts";
import { defineCommand, jsonArg, misuse, storeArg } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { count, printTable } from "../terminal.ts";

export const sessionsPermissions = defineCommand({
  args: {
    session: { type: "positional", valueHint: "SESSION", required: true, description: "the session's id" },
    revoke: { type: "string", valueHint: "TOOL", description: "revoke the remembered permissions of this tool" },
    agent: { type: "string", valueHint: "ID", description: "with --revoke: only for this agent (default: for all)" },
    ...storeArg,
    ...jsonArg,
  },
  examples: ["sessions permissions user-123", "sessions permissions user-123 --revoke write_note --agent helper"],
  async run({ args, terminal }) {
    const { agent: agentId, revoke: tool } = args;
    if (agentId !== undefined && tool === undefined) throw misuse("--agent requires --revoke.");
    return withStore(chooseStore(args.store), {}, async (store) => {
      const sessions = await openSessions(store);
      if (tool !== undefined) {
        const meant = { tool, ...(agentId !== undefined && { agentId }) };
        const revoked = await sessions.revokePermission(args.session, meant);
        if (args.json) terminal.print(JSON.stringify({ revoked }));
        else terminal.print(`Revoked ${count(revoked, "permission")} of ${visible(tool)}.`);
        return 0;
      }
      const permissions = await sessions.listPermissions(args.session);
      if (args.json) {
        terminal.print(JSON.stringify({ permissions }));
        return 0;
      }
      const rows = permissions.map((each) => [
        each.tool,
        each.agentId ?? "(agents without an id)",
        each.decision,
        moment(each.at),
        each.by ?? "",
      ]);
      if (rows.length === 0) terminal.print("No permissions are remembered in this session.");
      else printTable(terminal, ["TOOL", "AGENT", "DECISION", "SINCE", "BY"], rows);
      return 0;
    });
  },
});
