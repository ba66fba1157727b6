// What the suites of mounts share: a server with a small protocol of its own beside the routes.

import { onTestFinished } from "vitest";
import { type Script, scriptedModel } from "../../src/scripted/index.ts";
import {
  createServer,
  type Mount,
  type MountCall,
  type MountRoute,
  type ServerOptions,
  type SseEvent,
} from "../../src/server/index.ts";
import { type AuditRecord, type Frame, type Scope, scopes } from "../../src/wire/index.ts";
import { add, answerOf, type OpenStore, quiet, requestOf } from "./kit.ts";

export const placeOf = ({ params }: MountCall) => ({
  agentId: "helper",
  sessionId: params.sessionId!,
  branchId: "main",
});

/** The texts of one run, as the events of a small protocol. */
async function* texts(frames: AsyncIterable<Frame>): AsyncGenerator<SseEvent> {
  for await (const frame of frames) {
    if (frame.type === "end") yield { event: "gone", data: frame.reason };
    if (frame.type !== "event") continue;
    if (frame.event.type === "text-delta") yield { event: "text", data: frame.event.text };
    if (frame.event.type === "run-end") break;
  }
  yield { event: "done", data: { ok: true }, id: "last" };
}

/** Submits an input and streams the texts of its run. */
export const talk: MountRoute = {
  name: "talk",
  method: "POST",
  path: "/:sessionId",
  scope: "run",
  async handle(call) {
    const frames = await call.tenant.watch(placeOf(call));
    await call.tenant.submitInput(placeOf(call), (await call.json()) as { input: string });
    return { events: texts(frames), headers: { "x-chat": "v1" } };
  },
};

export const get = (name: string, handle: MountRoute["handle"], more: Partial<MountRoute> = {}): MountRoute => ({
  name,
  method: "GET",
  path: `/${name}`,
  scope: "read",
  handle,
  ...more,
});

export const mountOf = (...routes: MountRoute[]): Mount => ({ name: "chat", path: "/chat", routes });

/** A server where a key is a tenant, with the scopes that the request names. */
export async function givenMounts(
  open: OpenStore,
  mount: Mount | readonly Mount[],
  options: Partial<ServerOptions> = {},
  script: Script = ["Hello there."],
) {
  const revoked = new Set<string>();
  const server = createServer({
    agents: { helper: { model: scriptedModel(script), tools: { add }, logger: quiet } },
    store: await open(),
    auth: ({ headers }) => {
      const tenant = headers.get("x-api-key");
      const allowed = headers.get("x-scopes")?.split(",") as Scope[] | undefined;
      if (tenant === null || revoked.has(tenant)) return undefined;
      return { tenant, user: `user of ${tenant}`, scopes: allowed ?? scopes };
    },
    logger: quiet,
    mounts: Array.isArray(mount) ? (mount as readonly Mount[]) : [mount as Mount],
    ...options,
  });
  onTestFinished(() => server.close());
  const fetch = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    server.fetch(requestOf(method, path, body, { "x-api-key": "a", ...headers }));
  const ask = async (...asked: Parameters<typeof fetch>) => answerOf(await fetch(...asked));
  await ask("POST", `${server.prefix}/sessions`, { sessionId: "s" });
  const audit = async (key = "a"): Promise<AuditRecord[]> =>
    (await ask("GET", "/audit?limit=1000&order=oldest", undefined, { "x-api-key": key })).body.records;
  return { server, fetch, ask, audit, revoked };
}

/** Streams the texts of a branch. */
export const watchRoute = get("watch", async (call) => ({ events: texts(await call.tenant.watch(placeOf(call))) }), {
  path: "/watch/:sessionId",
});
