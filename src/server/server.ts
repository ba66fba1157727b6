// Server: from a request to an answer. Who asks is settled before what is asked for, and whatever goes wrong on the way
// becomes a problem document here and nowhere else.

import { Hono, type Context as HonoContext } from "hono";
import { Agent } from "../agent/index.ts";
import { systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BranchRef, Store } from "../log/store.ts";
import { lazyStore } from "../sessions/open-store.ts";
import { needBranch } from "../sessions/views.ts";
import { idSchema, type Route, type RouteName, routes } from "../wire/index.ts";
import { Attempt } from "./attempt.ts";
import { AuditLog } from "./audit/log.ts";
import { type Authenticate, checkToken, type Identity, randomToken, tokenAuth } from "./auth.ts";
import { parse, readJson, readQuery } from "./body.ts";
import { ByteBudget, type HeldBytes } from "./bytes.ts";
import { Exchange, type Held } from "./exchange.ts";
import { type GuardOptions, guard, preflight, secure } from "./guard.ts";
import { Guesses, networkOf } from "./guesses.ts";
import { handlers } from "./handlers/index.ts";
import { cursorOf } from "./handlers/live.ts";
import { defaultLimits, type ServerLimits, type ServerOptions } from "./options.ts";
import { isForPage, pageResponder } from "./page.ts";
import { actionScope, askProgram, checkScope, hasScopeFor } from "./policy.ts";
import { checkPrefix } from "./prefix.ts";
import { RateLimit } from "./rate.ts";
import { problemOf, problemResponse, Refusal } from "./refusal.ts";
import { Socket, type SocketEnd } from "./socket.ts";
import type { Tenant } from "./tenant.ts";
import { Tenants } from "./tenants.ts";
import { Waker } from "./waker.ts";

interface Entered {
  readonly attempt: Attempt;
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
  /** The other side's address, as far as it is known: for the audit log, and guesses are counted by it. */
  readonly remoteAddress?: string;
  /** Whether live streams are written to it by whoever holds it (`streamOf`). */
  readonly writesStreams?: boolean;
}

/** A socket that may be opened: give it the connection. */
export type OpenSocket = (connection: SocketEnd) => Socket;

export class Server {
  /** The token that lets in whoever has it; none when the server has its own authentication. */
  readonly token: string | undefined;
  readonly limits: ServerLimits;
  /** The path below which its routes lie; "" for none. */
  readonly prefix: string;
  /** Whether host names were said, so that the server may listen where others reach it. */
  readonly isNamed: boolean;
  readonly #options: ServerOptions;
  readonly #store: Store;
  readonly #authenticate: Authenticate;
  readonly #guard: GuardOptions;
  readonly #rate: RateLimit;
  readonly #pageRate: RateLimit;
  readonly #guesses: Guesses;
  readonly #bytes: ByteBudget;
  readonly #audit: AuditLog | undefined;
  readonly #page: (() => Response) | undefined;
  readonly #tenants: Tenants;
  readonly #app: Hono<Env>;
  #waker: Waker | undefined;
  #isClosed = false;

  /** Use `createServer`. */
  constructor(options: ServerOptions) {
    const { auth, hosts = ["localhost", "127.0.0.1", "[::1]"], origins = [], clock = systemClock } = options;
    checkSaving(options);
    this.#options = options;
    this.limits = { ...defaultLimits, ...options.limits };
    this.prefix = checkPrefix(options.prefix);
    this.isNamed = options.hosts !== undefined;
    if (!auth && options.token !== undefined) checkToken(options.token);
    this.#store = storeOf(options);
    this.#tenants = new Tenants(this.#store, this.limits, options);
    this.token = auth ? undefined : (options.token ?? randomToken());
    this.#authenticate = auth ?? tokenAuth(this.token!);
    this.#guard = { hosts: new Set(hosts.map((host) => host.toLowerCase())), origins: new Set(origins) };
    const { requestsPerSecond: perSecond, burst } = this.limits;
    const now = () => clock.now();
    this.#rate = new RateLimit({ perSecond, burst, now });
    this.#pageRate = new RateLimit({ perSecond, burst, now });
    this.#guesses = new Guesses({ perMinute: this.limits.guesses, now });
    this.#bytes = new ByteBudget({ perTenant: this.limits.tenantBytes, perProcess: this.limits.processBytes });
    const { audit = {}, logger = console } = options;
    const warn = (message: string, error: unknown) => logger.warn(message, error);
    this.#audit = audit ? new AuditLog({ store: this.#store, clock, options: audit, warn }) : undefined;
    this.#page = options.page === undefined ? undefined : pageResponder(options.page);
    this.#app = this.#route();
  }

  /** Takes up turns that other processes left behind, from now on. Begins by itself with the first request. */
  recover(): void {
    if (this.#waker || this.#isClosed) return;
    const { auth, clock = systemClock } = this.#options;
    if (!auth) this.#tenants.get("");
    const warn = (message: string, error: unknown) => this.warn(message, error);
    const wake = async (name: string, ref: BranchRef) => {
      const isOurs = auth ? name !== "" : name === "";
      try {
        if (isOurs) await this.#tenants.use(name, (tenant) => tenant.wake(ref));
      } catch (error) {
        // One that can't be read must not keep the others from being found.
        warn("A turn could not be looked at:", error);
      }
    };
    const letGo = (now: number) => this.#tenants.letGo(now);
    this.#waker = new Waker({ store: this.#store, clock, wake, letGo, warn });
    this.#audit?.begin();
  }

  /** Says what went wrong where failures of the server go. */
  warn(message: string, error: unknown): void {
    (this.#options.logger ?? console).warn(message, error);
  }

  /** Answers a request. Never rejects. */
  readonly fetch = (request: Request): Promise<Response> => this.answer(request);

  /** The same for whoever holds the connection. */
  async answer(request: Request, connection?: Connection): Promise<Response> {
    const attempt = Attempt.of(request, connection?.remoteAddress);
    const response = await this.#answer(request, connection, attempt).catch((error: unknown) =>
      this.#refuse(error, attempt),
    );
    this.#audit?.record(attempt, response.status);
    response.headers.set("x-request-id", attempt.requestId);
    return secure(response, request, this.#guard.origins);
  }

  /** Whether a request for a WebSocket may have one: a function that takes the connection, or the answer instead. */
  async connect(request: Request, connection?: Connection): Promise<OpenSocket | Response> {
    const attempt = Attempt.of(request, connection?.remoteAddress);
    const opened = await this.#connect(request, connection, attempt).catch((error: unknown) =>
      this.#refuse(error, attempt),
    );
    this.#audit?.record(attempt, opened instanceof Response ? opened.status : routes.socket.status);
    return opened instanceof Response ? secure(opened, request, this.#guard.origins) : opened;
  }

  async #connect(
    request: Request,
    connection: Connection | undefined,
    attempt: Attempt,
  ): Promise<OpenSocket | Response> {
    let exchange: Exchange | undefined;
    const asSocket = (asked: Exchange) => {
      exchange = asked;
    };
    const entered = await this.#enter(request, connection, attempt);
    return this.#tenants.use(entered.identity.tenant, async (tenant) => {
      const response = await this.#app.fetch(request, { ...entered, tenant, asSocket });
      return exchange ? this.#socket(exchange, attempt) : response;
    });
  }

  /** Ends streams, lets runs come to their end for as long as `drainMs` says, hands the rest over, closes the store. */
  async close(options: { drainMs?: number } = {}): Promise<void> {
    this.#isClosed = true;
    await this.#waker?.stop();
    await this.#tenants.close(options);
    await this.#audit?.close();
    await this.#store.close();
  }

  async #answer(request: Request, connection: Connection | undefined, attempt: Attempt): Promise<Response> {
    const early = preflight(request, this.#guard.origins);
    if (early) return early;
    if (this.#page && isForPage(request, this.prefix)) {
      guard(request, this.#guard, connection?.target);
      this.#pageRate.take(networkOf(connection?.remoteAddress));
      return this.#page();
    }
    const entered = await this.#enter(request, connection, attempt);
    return this.#tenants.use(entered.identity.tenant, async (tenant) =>
      this.#app.fetch(request, { ...entered, tenant }),
    );
  }

  /** The door: everything that is true of every request, whatever it asks for. */
  async #enter(
    request: Request,
    connection: Connection | undefined,
    attempt: Attempt,
  ): Promise<Omit<Entered, "tenant">> {
    guard(request, this.#guard, connection?.target);
    if (this.#isClosed) throw new BoughError("store_closed", "The server is closed.");
    this.recover();
    const identity = await this.#guesses.limit(request, connection?.remoteAddress, this.#authenticate);
    if (!identity) throw new Refusal("unauthorized");
    attempt.identity = identity;
    this.#rate.take(`tenant ${identity.tenant}`);
    return { attempt, identity, connection };
  }

  #route(): Hono<Env> {
    const app = new Hono<Env>().basePath(this.prefix);
    for (const [name, route] of Object.entries(routes) as [RouteName, Route][]) {
      app.on(route.method, route.path, (c) => this.#handle(name, route, c));
    }
    app.notFound((c) => this.#refuse(new Refusal("route_not_found"), c.env.attempt));
    app.onError((error, c) => this.#refuse(error, c.env.attempt));
    return app;
  }

  async #handle(name: RouteName, route: Route, c: HonoContext<Env>): Promise<Response> {
    const { attempt, identity, tenant, connection, asSocket } = c.env;
    const request = c.req.raw;
    if (asSocket && route.gives !== "socket") throw new Refusal("invalid_argument", "This route is no WebSocket.");
    if (request.method === "HEAD") throw new Refusal("route_not_found");
    const params = c.req.param() as Record<string, string>;
    attempt.action = name;
    attempt.scope = actionScope(params, undefined);
    checkScope(identity, route);
    const { limits } = this;
    const query = readQuery(new URL(request.url), route.query);
    const holdBytes = () => this.#bytes.hold(identity.tenant);
    const body = route.body && (await this.#readBody(request, route.body, route, holdBytes()));
    for (const id of Object.values(params)) parse(idSchema, id);
    attempt.body = body;
    attempt.scope = actionScope(params, body);
    await askProgram(this.#options.authorize, identity, name, attempt.scope);
    const hold = () => this.#hold(request, tenant, attempt);
    const writesStreams = connection?.writesStreams ?? false;
    const exchange = new Exchange({
      request,
      route,
      identity,
      tenant,
      audit: this.#audit,
      limits,
      prefix: this.prefix,
      allowRecursiveDelete: this.#options.allowRecursiveDelete ?? false,
      query,
      body,
      writesStreams,
      params,
      hold,
      holdBytes,
    });
    if (route.gives === "socket" && asSocket) {
      asSocket(exchange);
      return new Response(null);
    }
    const result = await handlers[name](exchange);
    attempt.result = result;
    if (result instanceof Response) return result;
    if (route.gives === "nothing") return new Response(null, { status: route.status });
    return Response.json(result ?? null, { status: route.status });
  }

  async #readBody(request: Request, schema: NonNullable<Route["body"]>, route: Route, held: HeldBytes) {
    const { bodyBytes: limit, depth } = this.limits;
    try {
      return await readJson(request, schema, { limit, depth, optional: route.bodyOptional ?? false, held });
    } finally {
      held.release();
    }
  }

  async #socket(exchange: Exchange, attempt: Attempt): Promise<OpenSocket> {
    await exchange.agent();
    const after = cursorOf(exchange);
    await needBranch(exchange.tenant.context.store, exchange.ref);
    this.#checkPlaces(exchange.tenant);
    const permit = async ({ identity, action, scope }: Attempt) => {
      this.#rate.take(`tenant ${exchange.identity.tenant}`);
      checkScope(identity!, routes[action!]);
      await askProgram(this.#options.authorize, identity!, action!, scope);
    };
    const record = (frame: Attempt, status: number) => this.#audit?.record(frame, status);
    // A handshake can still fail: only a socket that opens takes a place.
    return (connection) => new Socket({ exchange, held: exchange.hold(), after, connection, attempt, permit, record });
  }

  #checkPlaces({ streams }: Tenant): void {
    if (streams < this.limits.streams) return;
    throw new Refusal("rate_limited", "Too many streams are open.", { retryAfterMs: 1000 });
  }

  #hold(request: Request, tenant: Tenant, attempt: Attempt): Held {
    this.#checkPlaces(tenant);
    tenant.streams++;
    let isDone = false;
    let isRefused = false;
    return {
      identity: async () => {
        // An identity that can't be asked about is let in no further.
        const now = await this.#stillAllowed(request, tenant, attempt).catch(() => undefined);
        if (!now && !isRefused) this.#audit?.record(attempt.revoked(), 401);
        isRefused ||= !now;
        return now;
      },
      done: () => {
        if (!isDone) tenant.streams--;
        isDone = true;
      },
    };
  }

  /** Whether a stream that was let in would still be. */
  async #stillAllowed(request: Request, tenant: Tenant, { action, scope }: Attempt): Promise<Identity | undefined> {
    const now = await this.#authenticate(request);
    if (!now || this.#tenants.known(now.tenant) !== tenant || !hasScopeFor(now, routes[action!])) return undefined;
    await askProgram(this.#options.authorize, now, action!, scope);
    return now;
  }

  /** The one place where an error becomes an answer. */
  #refuse(error: unknown, attempt: Attempt): Response {
    const problem = problemOf(error);
    attempt.code = problem.code;
    if (problem.status >= 500 && problem.code !== "store_closed") {
      this.warn(`A request failed (${attempt.requestId}):`, error);
    }
    return problemResponse(problem, attempt.requestId);
  }
}

/** A client has no way to save what its run leaves staged. */
function checkSaving({ agents = {} }: ServerOptions): void {
  for (const [id, agent] of Object.entries(agents)) {
    if (agent.persistAfterTurn !== false) continue;
    const sentence = `Agent "${id}" has persistAfterTurn: false, but nothing behind a server saves its turns. Leave it out.`;
    throw new BoughError("invalid_argument", sentence, { data: { agentId: id } });
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
