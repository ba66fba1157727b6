import type { AuditQuery, RouteName } from "../../wire/index.ts";
import type { Exchange, Handler } from "../exchange.ts";
import { openApi } from "../openapi.ts";
import { Refusal } from "../refusal.ts";
import { agentHandlers } from "./agents.ts";
import { branchHandlers } from "./branches.ts";
import { checkpointHandlers } from "./checkpoints.ts";
import { compactionHandlers } from "./compaction.ts";
import { contentHandlers } from "./content.ts";
import { liveHandlers } from "./live.ts";
import { queueHandlers } from "./queue.ts";
import { runHandlers } from "./runs.ts";
import { sessionHandlers } from "./sessions.ts";
import { taskHandlers } from "./tasks.ts";

/** A handler for every route of the table. */
export const handlers: Readonly<Record<RouteName, Handler>> = {
  health: () => ({ status: "ok" }),
  async ready({ tenant }: Exchange) {
    await tenant.sessions.listSessions({ limit: 1 });
    return { status: "ok" };
  },
  openapi: ({ prefix }: Exchange) => openApi(prefix),
  ...sessionHandlers,
  ...branchHandlers,
  ...checkpointHandlers,
  ...compactionHandlers,
  ...contentHandlers,
  ...runHandlers,
  ...queueHandlers,
  ...taskHandlers,
  ...liveHandlers,
  ...agentHandlers,
  audit({ audit, identity, query }: Exchange) {
    if (!audit) throw new Refusal("route_not_found", "This server has no audit log.");
    return audit.read(identity.tenant, query as AuditQuery);
  },
};
