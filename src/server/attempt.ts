// Attempt: one request, or one frame of a socket, from its arrival to its outcome. It carries the request id through the
// server and gathers what the audit log is told.

import type { Identity } from "../base/identity.ts";
import { randomIds } from "../base/ids.ts";
import { type ProblemCode, type RouteName, requestIdPattern } from "../wire/index.ts";
import { type ActionScope, actionScope } from "./policy.ts";

export class Attempt {
  readonly requestId: string;
  readonly transport: "http" | "socket";
  /** The other end of the connection. */
  readonly address: string | undefined;
  readonly method: string;
  readonly url: string;
  identity: Identity | undefined;
  action: RouteName | undefined;
  scope: ActionScope = {};
  body: unknown;
  /** What the handler returned. */
  result: unknown;
  /** Why it was refused. */
  code: ProblemCode | undefined;
  #frames = 0;

  constructor(given: {
    requestId: string;
    transport: Attempt["transport"];
    address: string | undefined;
    method: string;
    url: string;
  }) {
    this.requestId = given.requestId;
    this.transport = given.transport;
    this.address = given.address;
    this.method = given.method;
    this.url = given.url;
  }

  static of(request: Request, address: string | undefined): Attempt {
    const { method, url } = request;
    return new Attempt({ requestId: requestIdOf(request.headers), transport: "http", address, method, url });
  }

  /** The next frame of the socket that this request opened. */
  frame(action: RouteName, identity: Identity, body: unknown): Attempt {
    const { address, method, url } = this;
    const requestId = `${this.requestId}.${++this.#frames}`;
    const frame = new Attempt({ requestId, transport: "socket", address, method, url });
    frame.action = action;
    frame.identity = identity;
    frame.scope = { ...this.scope, ...actionScope({}, body) };
    frame.body = body;
    return frame;
  }

  /** The end of a stream that was let in and may no longer be read. */
  revoked(): Attempt {
    const end = new Attempt(this);
    end.action = this.action;
    end.identity = this.identity;
    end.scope = this.scope;
    end.code = "unauthorized";
    return end;
  }
}

/** The client's own id, when it is a short plain word; otherwise a new one. */
function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && requestIdPattern.test(given) ? given : randomIds.next();
}
