// Server: from a request to an answer. Who asks is settled before what is asked for, and whatever goes wrong on the way
// becomes a problem document here and nowhere else.

import { Hono, type Context as HonoContext } from "hono";
import { Agent } from "../agent/index.ts";
import { systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BranchRef, Store } from "../log/store.ts";
import { lazyStore } from "../sessions/open-store.ts";
import { type Route, type RouteName, routes } from "../wire/index.ts";
import { type Authenticate, type Identity, randomToken, tokenAuth } from "./auth.ts";
import { readJson, readQuery } from "./body.ts";
import { Exchange, type Held } from "./exchange.ts";
import { type GuardOptions, guard, preflight, secure } from "./guard.ts";
import { handlers } from "./handlers/index.ts";
import { cursorOf } from "./handlers/live.ts";
import { defaultLimits, type ServerLimits, type ServerOptions } from "./options.ts";
import { isForPage, pageResponder } from "./page.ts";
import { RateLimit } from "./rate.ts";
import { problemOf, problemResponse, Refusal } from "./refusal.ts";
import { Socket, type SocketEnd } from "./socket.ts";
import { Tenant } from "./tenant.ts";
import { Waker } from "./waker.ts";

interface Entered {
  readonly identity: Identity;
  readonly tenant: Tenant;
  readonly connection: Connection | undefined;
  readonly asSocket?: (exchange: Exchange) => void;
}
type Env = { Bindings: Entered };

/** What a request comes over. */
export interface Connection {
  /** The path and query as they were sent. */
  readonly target: string;
  /** Whether live streams are written to it by whoever holds it (`streamOf`). */
  readonly writesStreams?: boolean;
}

/** A socket that may be opened: give it the connection. */
export type OpenSocket = (connection: SocketEnd) => Socket;

export class Server {
  /** The token that lets in whoever has it; none when the server has its own authentication. */
  readonly token: string | undefined;
  readonly limits: ServerLimits;
  /** Whether host names were said, so that the server may listen where others reach it. */
  readonly isNamed: boolean;
  readonly #options: ServerOptions;
  readonly #store: Store;
  readonly #authenticate: Authenticate;
  readonly #guard: GuardOptions;
  readonly #rate: RateLimit;
  readonly #page: (() => Response) | undefined;
  readonly #tenants = new Map<string, Tenant>();
  readonly #app: Hono<Env>;
  #waker: Waker | undefined;
  #isClosed = false;

  /** Use `createServer`. */
  constructor(options: ServerOptions) {
    const { auth, hosts = ["localhost", "127.0.0.1", "[::1]"], origins = [], clock = systemClock } = options;
    this.#options = options;
    this.limits = { ...defaultLimits, ...options.limits };
    this.isNamed = options.hosts !== undefined;
    this.#store = storeOf(options);
    this.token = auth ? undefined : (options.token ?? randomToken());
    this.#authenticate = auth ?? tokenAuth(this.token!);
    this.#guard = { hosts: new Set(hosts.map((host) => host.toLowerCase())), origins: new Set(origins) };
    const { requestsPerSecond: perSecond, burst } = this.limits;
    this.#rate = new RateLimit({ perSecond, burst, now: () => clock.now() });
    this.#page = options.page === undefined ? undefined : pageResponder(options.page);
    this.#app = this.#route();
  }

  /** Takes up turns that other processes left behind, from now on. Begins by itself with the first request. */
  recover(): void {
    if (this.#waker || this.#isClosed) return;
    const { auth, clock = systemClock, logger = console } = this.#options;
    if (!auth) this.#tenant("");
    const warn = (message: string, error: unknown) => logger.warn(message, error);
    const wake = async (name: string, ref: BranchRef) => {
      const isOurs = auth ? name !== "" : name === "";
      try {
        if (isOurs) await this.#tenant(name).wake(ref);
      } catch (error) {
        // One that can't be read must not keep the others from being found.
        warn("A turn could not be looked at:", error);
      }
    };
    this.#waker = new Waker({ store: this.#store, clock, wake, warn });
  }

  /** Answers a request. Never rejects. */
  readonly fetch = (request: Request): Promise<Response> => this.answer(request);

  /** The same for whoever holds the connection. */
  async answer(request: Request, connection?: Connection): Promise<Response> {
    const response = await this.#answer(request, connection).catch((error: unknown) => this.#refuse(error));
    return secure(response, request, this.#guard.origins);
  }

  /** Whether a request for a WebSocket may have one: a function that takes the connection, or the answer instead. */
  async connect(request: Request, connection?: Connection): Promise<OpenSocket | Response> {
    const opened = await this.#connect(request, connection).catch((error: unknown) => this.#refuse(error));
    return opened instanceof Response ? secure(opened, request, this.#guard.origins) : opened;
  }

  async #connect(request: Request, connection: Connection | undefined): Promise<OpenSocket | Response> {
    let exchange: Exchange | undefined;
    const asSocket = (asked: Exchange) => {
      exchange = asked;
    };
    const env = { ...(await this.#enter(request, connection)), asSocket };
    const response = await this.#app.fetch(request, env);
    return exchange ? this.#socket(exchange) : response;
  }

  /** Ends streams, lets runs come to their end for as long as `drainMs` says, hands the rest over, closes the store. */
  async close(options: { drainMs?: number } = {}): Promise<void> {
    this.#isClosed = true;
    await this.#waker?.stop();
    await Promise.all([...this.#tenants.values()].map((tenant) => tenant.close(options)));
    await this.#store.close();
  }

  async #answer(request: Request, connection: Connection | undefined): Promise<Response> {
    const early = preflight(request, this.#guard.origins);
    if (early) return early;
    if (this.#page && isForPage(request)) {
      guard(request, this.#guard, connection?.target);
      this.#rate.take("anonymous");
      return this.#page();
    }
    return this.#app.fetch(request, await this.#enter(request, connection));
  }

  /** The door: everything that is true of every request, whatever it asks for. */
  async #enter(request: Request, connection: Connection | undefined): Promise<Env["Bindings"]> {
    guard(request, this.#guard, connection?.target);
    if (this.#isClosed) throw new BoughError("store_closed", "The server is closed.");
    this.recover();
    const identity = await this.#authenticate(request);
    if (!identity) {
      this.#rate.take("anonymous");
      throw new Refusal("unauthorized");
    }
    this.#rate.take(`tenant ${identity.tenant}`);
    return { identity, tenant: this.#tenant(identity.tenant), connection };
  }

  #tenant(name: string): Tenant {
    const known = this.#tenants.get(name);
    if (known) return known;
    const { agents = {}, definitions = {}, logger = console, clock = systemClock, auth } = this.#options;
    if (auth && (name === "" || name.length > 64)) {
      throw new BoughError("store_unsupported", "A tenant has a name of at most 64 characters.");
    }
    const { limits } = this;
    const { questions = "park" } = this.#options;
    const tenant = new Tenant({ name, store: this.#store, clock, agents, limits, definitions, questions, logger });
    this.#tenants.set(name, tenant);
    tenant.recover();
    return tenant;
  }

  #route(): Hono<Env> {
    const app = new Hono<Env>();
    for (const [name, route] of Object.entries(routes) as [RouteName, Route][]) {
      app.on(route.method, route.path, (c) => this.#handle(name, route, c));
    }
    app.notFound(() => this.#refuse(new Refusal("route_not_found")));
    app.onError((error) => this.#refuse(error));
    return app;
  }

  async #handle(name: RouteName, route: Route, c: HonoContext<Env>): Promise<Response> {
    const { identity, tenant, connection, asSocket } = c.env;
    const request = c.req.raw;
    if (request.method === "HEAD") throw new Refusal("route_not_found");
    if (!identity.scopes.includes(route.scope)) throw new Refusal("forbidden", `Scope "${route.scope}" is needed.`);
    const { limits } = this;
    const query = readQuery(new URL(request.url), route.query);
    const optional = route.bodyOptional ?? false;
    const body =
      route.body && (await readJson(request, route.body, { limit: limits.bodyBytes, depth: limits.depth, optional }));
    const hold = () => this.#hold(request, tenant, route);
    const writesStreams = connection?.writesStreams ?? false;
    const params = c.req.param() as Record<string, string>;
    const exchange = new Exchange({
      request,
      route,
      identity,
      tenant,
      limits,
      query,
      body,
      writesStreams,
      params,
      hold,
    });
    if (route.gives === "socket" && asSocket) {
      asSocket(exchange);
      return new Response(null);
    }
    const result = await handlers[name](exchange);
    if (result instanceof Response) return result;
    if (route.gives === "nothing") return new Response(null, { status: route.status });
    return Response.json(result ?? null, { status: route.status });
  }

  async #socket(exchange: Exchange): Promise<OpenSocket> {
    await exchange.agent();
    const after = cursorOf(exchange);
    await exchange.tenant.sessions.getBranch(exchange.ref.sessionId, exchange.ref.branchId);
    this.#checkPlaces(exchange.tenant);
    const take = () => this.#rate.take(`tenant ${exchange.identity.tenant}`);
    // A handshake can still fail: only a socket that opens takes a place.
    return (connection) => new Socket({ exchange, held: exchange.hold(), after, connection, take });
  }

  #checkPlaces({ streams }: Tenant): void {
    if (streams < this.limits.streams) return;
    throw new Refusal("rate_limited", "Too many streams are open.", { retryAfterMs: 1000 });
  }

  #hold(request: Request, tenant: Tenant, route: Route): Held {
    this.#checkPlaces(tenant);
    tenant.streams++;
    let isDone = false;
    return {
      identity: async () => {
        // Whoever can't be asked about is let in no further.
        const now = await (async () => this.#authenticate(request))().catch(() => undefined);
        return now && this.#tenants.get(now.tenant) === tenant && now.scopes.includes(route.scope) ? now : undefined;
      },
      done: () => {
        if (!isDone) tenant.streams--;
        isDone = true;
      },
    };
  }

  /** The one place where an error becomes an answer. */
  #refuse(error: unknown): Response {
    const problem = problemOf(error);
    if (problem.status >= 500 && problem.code !== "store_closed") {
      (this.#options.logger ?? console).warn("A request failed:", error);
    }
    return problemResponse(problem);
  }
}

function storeOf({ store, agents = {}, auth, clock = systemClock }: ServerOptions): Store {
  const made = Object.values(agents).filter((agent) => agent instanceof Agent);
  if (made.length > 0 && auth) {
    throw new BoughError("invalid_argument", "An agent that exists has one store for all; give its options instead.");
  }
  const own = made[0]?.store ?? lazyStore(store, { clock });
  const isShared = made.every((agent) => agent.store === own) && (made.length === 0 || !store || store === own);
  if (isShared) return own;
  throw new BoughError("invalid_argument", "All agents of a server share its store.");
}
