// Handles a mount's route: the checks before its handler is called, and the handler's arguments.

import type { Identity } from "../../base/identity.ts";
import { idSchema } from "../../wire/index.ts";
import type { Attempt } from "../attempt.ts";
import { jsonOf, parse, readBytes } from "../body.ts";
import type { HeldBytes } from "../bytes.ts";
import type { Held } from "../exchange.ts";
import type { ServerLimits } from "../options.ts";
import { type ActionScope, actionScope, checkScope } from "../policy.ts";
import type { Tenant } from "../tenant.ts";
import { Call } from "./call.ts";
import type { MountedRoute } from "./check.ts";
import { type Admit, tenantAccess } from "./tenant-access.ts";

export interface MountRequest {
  readonly request: Request;
  readonly identity: Identity;
  readonly tenant: Tenant;
  readonly attempt: Attempt;
  readonly limits: ServerLimits;
  readonly params: Readonly<Record<string, string>>;
  readonly writesStreams: boolean;
  /** The byte allowance for the body. */
  readonly holdBytes: () => HeldBytes;
  /** Takes a place for streams. */
  readonly hold: () => Held;
  /** Calls `authorize` for the route; throws if it refuses. */
  readonly authorize: (scope: ActionScope) => Promise<void>;
  readonly admit: Admit;
  readonly record: (attempt: Attempt, status: number) => void;
  readonly warn: (message: string, error: unknown) => void;
}

export async function answerMount(route: MountedRoute, asked: MountRequest): Promise<Response> {
  const { request, identity, tenant, attempt, limits, params } = asked;
  attempt.begin(route.action, route, actionScope(params, undefined));
  checkScope(identity, route);
  for (const id of Object.values(params)) parse(idSchema, id);
  await asked.authorize(attempt.scope);
  const held = asked.holdBytes();
  try {
    const bytes = await readBytes(request, route.bodyBytes ?? limits.bodyBytes, held);
    const { hold, writesStreams, admit, record, warn } = asked;
    const call = new Call({ request, tenant, attempt, hold, writesStreams, warn });
    try {
      const answer = await route.handle({
        request: withBody(request, bytes, call.signal),
        requestId: attempt.requestId,
        identity,
        params,
        signal: call.signal,
        json: async () => jsonOf(request, bytes, limits.depth),
        tenant: tenantAccess({ call, attempt, identity, admit, record }),
      });
      return call.answer(answer);
    } catch (error) {
      call.end();
      throw error;
    }
  } finally {
    held.release();
  }
}

/** The same request, with the body that was read. */
function withBody({ url, method, headers }: Request, bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal): Request {
  return new Request(url, { method, headers, signal, ...(bytes.length > 0 && { body: bytes }) });
}
