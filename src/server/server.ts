// Server: from a request to a response. Authentication comes before routing, and every error
// becomes a problem document here, and nowhere else.

import { Hono, type Context as HonoContext } from "hono";
import { systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BranchRef, Store } from "../log/store.ts";
import { needBranch } from "../sessions/branch-record.ts";
import { idSchema, type Route, type RouteName, routes } from "../wire/index.ts";
import type { Assets } from "./assets.ts";
import { Attempt } from "./attempt.ts";
import { AuditLog } from "./audit/log.ts";
import { type Authenticate, checkToken, type Identity, randomToken, tokenAuth } from "./auth.ts";
import { parse, readJson, readQuery } from "./body.ts";
import { ByteBudget, type HeldBytes } from "./bytes.ts";
import { checkServerOptions } from "./check-options.ts";
import { compressed, jsonResponse } from "./compress.ts";
import { Exchange, type Held } from "./exchange.ts";
import { type GuardOptions, guard, preflight, secure } from "./guard.ts";
import { Guesses, networkOf } from "./guesses.ts";
import { handlers } from "./handlers/index.ts";
import { cursorOf } from "./handlers/live.ts";
import { refuseHidden } from "./hidden.ts";
import { checkMounts, isBuiltIn, type MountedRoute } from "./mounts/check.ts";
import { answerMount } from "./mounts/handle.ts";
import { defaultLimits, type ServerLimits, type ServerOptions } from "./options.ts";
import { actionScope, askProgram, checkScope, hasScopeFor } from "./policy.ts";
import { checkPrefix, isBelow } from "./prefix.ts";
import { RateLimit } from "./rate.ts";
import { problemOf, problemResponse, Refusal } from "./refusal.ts";
import { assetsOf, guardOptions, storeOf } from "./setup.ts";
import { Socket, type SocketEnd } from "./socket.ts";
import type { Tenant } from "./tenant.ts";
import { TenantWaker } from "./tenant-waker.ts";
import { Tenants } from "./tenants.ts";

interface Entered {
  readonly attempt: Attempt;
  readonly identity: Identity;
  readonly tenant: Tenant;
  readonly connection: Connection | undefined;
  readonly asSocket?: (exchange: Exchange) => void;
}
type Env = { Bindings: Entered };

/** The route of a request, with its validated input. */
interface Admission {
  readonly request: Request;
  readonly tenant: Tenant;
  readonly connection: Connection | undefined;
  readonly attempt: Attempt;
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
}

/** The connection of a request. */
export interface Connection {
  /** The path and query as they were sent. */
  readonly target: string;
  /** The remote address, if known: for the audit log and for counting guesses. */
  readonly remoteAddress?: string;
  /** Whether the owner of the connection writes live streams to it (`streamOf`). */
  readonly writesStreams?: boolean;
}

/** A socket that may be opened, as a function that takes the connection. */
export type OpenSocket = (connection: SocketEnd) => Socket;

/** A Bough server: answers requests, without listening by itself. */
export class Server {
  /** The token of the default authentication; undefined with `auth`. */
  readonly token: string | undefined;
  readonly limits: ServerLimits;
  /** The path of its routes; "" for none. */
  readonly prefix: string;
  /** Whether host names are configured, so that the server may listen on public addresses. */
  readonly isNamed: boolean;
  readonly #options: ServerOptions;
  readonly #store: Store;
  readonly #authenticate: Authenticate;
  readonly #guard: GuardOptions;
  readonly #mounted: readonly MountedRoute[];
  readonly #rate: RateLimit;
  readonly #pageRate: RateLimit;
  readonly #guesses: Guesses;
  readonly #bytes: ByteBudget;
  readonly #audit: AuditLog | undefined;
  readonly #assets: readonly Assets[];
  readonly #tenants: Tenants;
  readonly #app: Hono<Env>;
  #waker: TenantWaker | undefined;
  #isClosed = false;

  /** Use `createServer`. */
  constructor(options: ServerOptions) {
    const { auth, clock = systemClock, mounts = [] } = options;
    checkServerOptions(options);
    this.#options = options;
    this.limits = { ...defaultLimits, ...options.limits };
    this.prefix = checkPrefix(options.prefix);
    this.isNamed = options.hosts !== undefined;
    this.#mounted = checkMounts(mounts);
    this.#guard = guardOptions(options);
    if (!auth && options.token !== undefined) checkToken(options.token);
    this.#store = storeOf(options);
    this.#tenants = new Tenants(this.#store, this.limits, options);
    this.token = auth ? undefined : (options.token ?? randomToken());
    this.#authenticate = auth ?? tokenAuth(this.token!);
    const { requestsPerSecond: perSecond, burst } = this.limits;
    const now = () => clock.now();
    this.#rate = new RateLimit({ perSecond, burst, now });
    this.#pageRate = new RateLimit({ perSecond, burst, now });
    this.#guesses = new Guesses({ perMinute: this.limits.guesses, now });
    this.#bytes = new ByteBudget({ perTenant: this.limits.tenantBytes, perProcess: this.limits.processBytes });
    const { audit = {}, logger = console } = options;
    const warn = (message: string, error: unknown) => logger.warn(message, error);
    this.#audit = audit ? new AuditLog({ store: this.#store, clock, options: audit, warn }) : undefined;
    this.#assets = assetsOf(options, this.prefix);
    this.#app = this.#route();
  }

  /** Starts to resume turns that other processes left open. Called automatically with the first request. */
  recover(): void {
    if (this.#waker || this.#isClosed) return;
    const { auth, clock = systemClock } = this.#options;
    if (!auth) this.#tenants.get("");
    const warn = (message: string, error: unknown) => this.warn(message, error);
    const wake = async (name: string, ref: BranchRef, isWaiting: boolean) => {
      const isOurs = auth ? name !== "" : name === "";
      try {
        return isOurs && (await this.#tenants.wake(name, ref, isWaiting));
      } catch (error) {
        // A turn that can't be read must not prevent others from being found.
        warn("An open turn could not be read:", error);
        return false;
      }
    };
    const letGo = (now: number) => this.#tenants.letGo(now);
    this.#waker = new TenantWaker({ store: this.#store, clock, wake, letGo, warn });
    this.#audit?.begin();
  }

  /** Logs a failure of the server. */
  warn(message: string, error: unknown): void {
    (this.#options.logger ?? console).warn(message, error);
  }

  /** Handles a request. Never rejects. */
  readonly fetch = (request: Request): Promise<Response> => this.answer(request);

  /** The same, for the owner of the connection. */
  async answer(request: Request, connection?: Connection): Promise<Response> {
    const attempt = Attempt.of(request, connection?.remoteAddress);
    const response = await this.#answer(request, connection, attempt).catch((error: unknown) =>
      this.#refuse(error, attempt),
    );
    this.#audit?.record(attempt, response.status);
    response.headers.set("x-request-id", attempt.requestId);
    const secured = secure(response, request, this.#guard);
    return this.#options.compress === false ? secured : compressed(secured, request);
  }

  /** Admits a WebSocket request: returns a function that takes the connection, or the response that refuses it. */
  async connect(request: Request, connection?: Connection): Promise<OpenSocket | Response> {
    const attempt = Attempt.of(request, connection?.remoteAddress);
    const opened = await this.#connect(request, connection, attempt).catch((error: unknown) =>
      this.#refuse(error, attempt),
    );
    this.#audit?.record(attempt, opened instanceof Response ? opened.status : routes.socket.status);
    return opened instanceof Response ? secure(opened, request, this.#guard) : opened;
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

  /** Ends streams, gives runs `drainMs` to finish, hands the rest over, and closes the store. */
  async close(options: { drainMs?: number } = {}): Promise<void> {
    this.#isClosed = true;
    await this.#waker?.stop();
    await this.#tenants.close(options);
    await this.#audit?.close();
    await this.#store.close();
  }

  async #answer(request: Request, connection: Connection | undefined, attempt: Attempt): Promise<Response> {
    const early = preflight(request, this.#guard);
    if (early) return early;
    const asset = this.#findAsset(request);
    if (asset) {
      guard(request, { ...this.#guard, allowsNavigation: true }, connection?.target);
      this.#pageRate.take(networkOf(connection?.remoteAddress));
      return asset;
    }
    const entered = await this.#enter(request, connection, attempt);
    return this.#tenants.use(entered.identity.tenant, async (tenant) =>
      this.#app.fetch(request, { ...entered, tenant }),
    );
  }

  /** Serves assets, which need no credential; never instead of a built-in route or a mount. */
  #findAsset(request: Request): Response | undefined {
    if (this.#assets.length === 0) return undefined;
    const path = new URL(request.url).pathname.slice(this.prefix.length);
    const isTaken = isBuiltIn(path) || (this.#options.mounts ?? []).some((mount) => isBelow(path, mount.path));
    if (isTaken) return undefined;
    for (const assets of this.#assets) {
      const found = assets.find(request);
      if (found) return found;
    }
    return undefined;
  }

  /** The checks of every request, whatever its route. */
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
    for (const route of this.#mounted) app.on(route.method, route.fullPath, (c) => this.#handleMount(route, c));
    app.notFound((c) => this.#refuse(new Refusal("route_not_found"), c.env.attempt));
    app.onError((error, c) => this.#refuse(error, c.env.attempt));
    return app;
  }

  async #handle(name: RouteName, route: Route, c: HonoContext<Env>): Promise<Response> {
    const { attempt, identity, tenant, connection, asSocket } = c.env;
    const request = c.req.raw;
    if (asSocket && route.gives !== "socket") throw new Refusal("invalid_argument", "This route is not a WebSocket.");
    if (request.method === "HEAD") throw new Refusal("route_not_found");
    const params = c.req.param() as Record<string, string>;
    attempt.begin(name, route, actionScope(params, undefined));
    checkScope(identity, route);
    const query = readQuery(new URL(request.url), route.query);
    const held = this.#bytes.hold(identity.tenant);
    const body = route.body && (await this.#readBody(request, route.body, route, held));
    const exchange = await this.#admit(name, { request, tenant, connection, attempt, params, query, body });
    if (route.gives === "socket" && asSocket) {
      asSocket(exchange);
      return new Response(null);
    }
    const result = await exchange.answer(handlers[name]);
    attempt.result = result;
    if (result instanceof Response) return result;
    if (route.gives === "nothing") return new Response(null, { status: route.status });
    return jsonResponse(JSON.stringify(result ?? null), route.status);
  }

  async #handleMount(route: MountedRoute, c: HonoContext<Env>): Promise<Response> {
    const { attempt, identity, tenant, connection, asSocket } = c.env;
    const request = c.req.raw;
    if (asSocket) throw new Refusal("invalid_argument", "This route is not a WebSocket.");
    if (request.method === "HEAD") throw new Refusal("route_not_found");
    return answerMount(route, {
      request,
      identity,
      tenant,
      attempt,
      limits: this.limits,
      params: c.req.param() as Record<string, string>,
      writesStreams: connection?.writesStreams ?? false,
      holdBytes: () => this.#bytes.hold(identity.tenant),
      hold: () => this.#hold(request, tenant, attempt),
      authorize: (scope) => askProgram(this.#options.authorize, identity, route.action, scope),
      admit: (name, operation, asked) =>
        this.#admit(name, { request, tenant, connection, attempt: operation, query: {}, ...asked }),
      record: (operation, status) => this.#audit?.record(operation, status),
      warn: (message, error) => this.warn(message, error),
    });
  }

  /** Calls `authorize` for a route; returns what its handler may use. */
  async #admit(name: RouteName, asked: Admission): Promise<Exchange> {
    const { request, tenant, connection, attempt, params, query, body } = asked;
    const identity = attempt.identity!;
    for (const id of Object.values(params)) parse(idSchema, id);
    attempt.body = body;
    attempt.scope = actionScope(params, body);
    await askProgram(this.#options.authorize, identity, name, attempt.scope);
    const exchange = new Exchange({
      request,
      route: routes[name],
      identity,
      tenant,
      audit: this.#audit,
      limits: this.limits,
      prefix: this.prefix,
      allowRecursiveDelete: this.#options.allowRecursiveDelete ?? false,
      query,
      body,
      writesStreams: connection?.writesStreams ?? false,
      params,
      hold: () => this.#hold(request, tenant, attempt),
      holdBytes: () => this.#bytes.hold(identity.tenant),
    });
    await refuseHidden(routes[name], tenant.context, () => exchange.ref);
    return exchange;
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
    const permit = async ({ identity, action, needs, scope }: Attempt) => {
      this.#rate.take(`tenant ${exchange.identity.tenant}`);
      checkScope(identity!, needs!);
      await askProgram(this.#options.authorize, identity!, action!, scope);
      await refuseHidden(routes[action as RouteName], exchange.tenant.context, () => exchange.ref);
    };
    const record = (frame: Attempt, status: number) => this.#audit?.record(frame, status);
    // The handshake can still fail: only an open socket takes a place.
    return (connection) => new Socket({ exchange, held: exchange.hold(), after, connection, attempt, permit, record });
  }

  #checkPlaces({ streams }: Tenant): void {
    if (streams < this.limits.streams) return;
    throw new Refusal("rate_limited", "Too many streams are open. Try again later.", { retryAfterMs: 1000 });
  }

  #hold(request: Request, tenant: Tenant, attempt: Attempt): Held {
    this.#checkPlaces(tenant);
    tenant.streams++;
    let isDone = false;
    let isRefused = false;
    return {
      identity: async () => {
        // If the check fails, access is refused.
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

  /** Whether the reader of an open stream still has access. */
  async #stillAllowed(request: Request, tenant: Tenant, attempt: Attempt): Promise<Identity | undefined> {
    const { action, needs, scope } = attempt;
    const now = await this.#authenticate(request);
    if (!now || this.#tenants.known(now.tenant) !== tenant || !hasScopeFor(now, needs!)) return undefined;
    await askProgram(this.#options.authorize, now, action!, scope);
    return now;
  }

  /** The only place where an error becomes a response. */
  #refuse(error: unknown, attempt: Attempt): Response {
    const problem = problemOf(error);
    attempt.code = problem.code;
    if (problem.status >= 500 && problem.code !== "store_closed") {
      this.warn(`A request failed (${attempt.requestId}):`, error);
    }
    return problemResponse(problem, attempt.requestId);
  }
}
