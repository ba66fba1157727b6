// Attempt: one request, or one socket frame, from its arrival to its outcome. It carries the request id through the
// server and collects the fields of its audit record.

import type { Identity } from "../base/identity.ts";
import { randomIds } from "../base/ids.ts";
import { type ProblemCode, type RouteName, requestIdPattern, routes } from "../wire/index.ts";
import { type Action, type ActionScope, actionScope, type Needs } from "./policy.ts";

export class Attempt {
  readonly requestId: string;
  readonly transport: "http" | "socket";
  /** The remote address of the connection. */
  readonly address: string | undefined;
  readonly method: string;
  readonly url: string;
  identity: Identity | undefined;
  action: Action | undefined;
  /** The scope of the action. */
  needs: Needs | undefined;
  scope: ActionScope = {};
  body: unknown;
  /** What the handler returned. */
  result: unknown;
  /** Why it was refused. */
  code: ProblemCode | undefined;
  #parts = 0;

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

  /** Sets the action that the request is for. */
  begin(action: Action, needs: Needs, scope: ActionScope): void {
    this.action = action;
    this.needs = needs;
    this.scope = scope;
  }

  /** Creates the attempt of the next frame on this request's socket. */
  frame(action: RouteName, identity: Identity, body: unknown): Attempt {
    const frame = this.#part("socket", identity);
    frame.begin(action, routes[action], { ...this.scope, ...actionScope({}, body) });
    frame.body = body;
    return frame;
  }

  /** Creates the attempt of a built-in action that a mount performs for this request. */
  operation(action: RouteName, identity: Identity, scope: ActionScope): Attempt {
    const operation = this.#part("http", identity);
    operation.begin(action, routes[action], scope);
    return operation;
  }

  #part(transport: Attempt["transport"], identity: Identity): Attempt {
    const { address, method, url } = this;
    const part = new Attempt({ requestId: `${this.requestId}.${++this.#parts}`, transport, address, method, url });
    part.identity = identity;
    return part;
  }

  /** Creates the attempt that records the end of a stream whose reader lost access. */
  revoked(): Attempt {
    const end = new Attempt(this);
    end.action = this.action;
    end.needs = this.needs;
    end.identity = this.identity;
    end.scope = this.scope;
    end.code = "unauthorized";
    return end;
  }
}

/** The client's request id if it is valid; otherwise a new one. */
function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && requestIdPattern.test(given) ? given : randomIds.next();
}
