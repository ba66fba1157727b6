// Every route of the table, asked by everybody who must not get through. A route that is added to the table is asked too.

import { expect, onTestFinished, test } from "vitest";
import { scriptedModel } from "../../src/scripted/index.ts";
import { apiKeys, createApiKey, createServer, type Identity, type Server } from "../../src/server/index.ts";
import { type Route, routes, type Scope, scopes } from "../../src/wire/index.ts";
import { type Answer, answerOf, expectProblem, type OpenStore, quiet, requestOf, until } from "./kit.ts";

const all = (Object.entries(routes) as [string, Route][]).map(([name, route]) => ({ name, ...route }));
const main = "/agents/stored/sessions/s/branches/main";

/** A server with two tenants. Ann has one of everything that a route can be about; Bob has nothing. */
class Tenants {
  readonly #keys = new Map<string, Identity>();
  readonly ann = this.keyFor("ann");
  readonly bob = this.keyFor("bob");
  readonly #server: Server;
  #contentId = "";
  #messageId = "";

  constructor(store: Awaited<ReturnType<OpenStore>>) {
    const model = scriptedModel(() => "Secret of Ann.");
    this.#server = createServer({
      agents: { helper: { model } },
      definitions: { models: { "scripted/a": model } },
      store,
      auth: apiKeys((hash) => this.#keys.get(hash)),
      limits: { requestsPerSecond: 10_000, burst: 10_000 },
      logger: quiet,
    });
    onTestFinished(() => this.#server.close());
  }

  keyFor(tenant: string, allowed: readonly Scope[] = scopes): string {
    const { key, hash } = createApiKey();
    this.#keys.set(hash, { tenant, user: `${tenant}-user`, scopes: allowed });
    return key;
  }

  async ask(method: string, path: string, key: string | undefined, body?: unknown): Promise<Answer> {
    const headers: Record<string, string> = {
      // An answer names its request: the same for all, so that answers can be compared byte for byte.
      "x-request-id": "matrix",
      ...(key !== undefined && { "x-api-key": key }),
    };
    return answerOf(await this.#server.fetch(requestOf(method, path, body, headers)));
  }

  connect(path: string, key: string) {
    return this.#server.connect(requestOf("GET", path, undefined, { "x-api-key": key }));
  }

  async fill(): Promise<void> {
    const post = (path: string, body: unknown) => this.ask("POST", path, this.ann, body);
    await post("/agents", { agentId: "stored", config: { model: "scripted/a", instructions: "Ann's words" } });
    await post("/sessions", { sessionId: "s", metadata: { owner: "ann" } });
    await post(`${main}/inputs`, { input: "Ann's question" });
    const messages = await until(async () => {
      const { body } = await this.ask("GET", `${main}/state`, this.ann);
      return body.messages.length === 2 && body.messages;
    });
    this.#messageId = messages[0].id;
    await post(`${main}/fork`, { newBranchId: "f" });
    await post("/sessions/s/branches/f/checkpoints", { checkpointId: "c" });
    const file = new TextEncoder().encode("Ann's file");
    this.#contentId = (await post("/sessions/s/branches/f/content", file)).body.id;
  }

  /** The path of something that Ann has. */
  pathOf({ path }: Route): string {
    const params: Record<string, string> = {
      agentId: "stored",
      sessionId: "s",
      branchId: "f",
      checkpointId: "c",
      runId: "r",
      contentId: this.#contentId,
      messageId: this.#messageId,
      toMessageId: this.#messageId,
      inputId: "i",
    };
    return path.replace(/:(\w+)/g, (_, name: string) => params[name]!);
  }

  /** A body that Ann's own request could have. */
  bodyOf({ name, body, takes }: Route & { name: string }): unknown {
    if (takes) return new Uint8Array([1, 2, 3]);
    const config = { model: "scripted/a" };
    const known: Record<string, unknown> = {
      updateSession: { metadata: { stolen: true } },
      revertBranch: { toMessageIndex: 0 },
      respond: { interactionId: "i", answer: {} },
      signal: { name: "go" },
      submitInput: { input: "Hi" },
      editInput: { input: "Hi" },
      createAgent: { config },
      updateAgent: { config },
      createSession: { sessionId: "s2" },
      createBranch: { branchId: "b2" },
      forkBranch: { newBranchId: "f2", fromMessageId: this.#messageId },
      forkCheckpoint: { newBranchId: "f3" },
    };
    return body && (known[name] ?? {});
  }
}

export function describeMatrix(open: OpenStore): void {
  const given = async () => {
    const tenants = new Tenants(await open());
    await tenants.fill();
    return tenants;
  };

  test("2.1 nobody gets through to any route without a valid key", async () => {
    let tenants = await given();
    const revoked = createApiKey().key;
    for (const [i, route] of all.entries()) {
      // After 240 wrong keys from one address a server looks at no more of them (2.8).
      if (i > 0 && i % 40 === 0) tenants = await given();
      const path = tenants.pathOf(route);
      for (const key of [undefined, "wrong", revoked]) {
        expectProblem(await tenants.ask(route.method, path, key, tenants.bodyOf(route)), 401, "unauthorized");
      }
      const inQuery = `${path}?token=${tenants.ann}&x-api-key=${tenants.ann}`;
      expectProblem(await tenants.ask(route.method, inQuery, undefined, tenants.bodyOf(route)), 401, "unauthorized");
    }
  });

  test("2.2 nobody gets through to any route without its scope", async () => {
    const tenants = await given();
    for (const route of all) {
      const others = tenants.keyFor(
        "ann",
        scopes.filter((each) => each !== route.scope && each !== route.otherScope),
      );
      expectProblem(
        await tenants.ask(route.method, tenants.pathOf(route), others, tenants.bodyOf(route)),
        403,
        "forbidden",
      );
    }
  });

  test.each(["stored", "helper"])(
    "2.3 another tenant's request to any route, by agent %s, is answered byte for byte as if there were nothing",
    async (agentId) => {
      const tenants = await given();
      for (const route of all) {
        const isTheirs = route.path.includes(":sessionId") || (route.path.includes(":agentId") && agentId === "stored");
        // It makes Bob a session of his own, which is looked at below.
        if (!isTheirs || route.name === "ensureSession") continue;
        const path = tenants.pathOf(route).replace("/agents/stored", `/agents/${agentId}`);
        const answer = await tenants.ask(route.method, path, tenants.bob, tenants.bodyOf(route));
        expect(answer.status, `${route.name}: ${JSON.stringify(answer.body)}`).toBe(404);
        const foreign = JSON.stringify(answer.body);
        // The same words as for something that nobody has.
        const nowhere = path.replace("/agents/stored", "/agents/nobody").replace("/sessions/s", "/sessions/none");
        const missing = await tenants.ask(route.method, nowhere, tenants.bob, tenants.bodyOf(route));
        expect(foreign).toBe(JSON.stringify(missing.body).replaceAll("nobody", "stored").replaceAll("none", "s"));
        expect(foreign).not.toMatch(/ann|~/i);
        expect([...answer.headers]).toEqual([...missing.headers]);
      }
      const own = await tenants.ask("PUT", "/sessions/s", tenants.bob, { metadata: { owner: "bob" } });
      expect(own.body).toMatchObject({ id: "s", metadata: { owner: "bob" } });
      // And nothing of Ann's is touched.
      const { body } = await tenants.ask("GET", "/sessions/s", tenants.ann);
      expect(body.metadata).toEqual({ owner: "ann" });
      expect((await tenants.ask("GET", "/sessions/s/branches", tenants.ann)).body.branches).toHaveLength(2);
    },
  );

  test("2.3 another tenant gets no socket", async () => {
    const tenants = await given();
    const path = "/agents/helper/sessions/s/branches/f/ws";
    expect(await tenants.connect(path, tenants.ann)).toBeTypeOf("function");
    expect(await tenants.connect(path, tenants.bob)).toMatchObject({ status: 404 });
    expect(await tenants.connect(path, "wrong")).toMatchObject({ status: 401 });
  });

  test("2.3 lists and searches show a tenant its own only", async () => {
    const tenants = await given();
    const { ann, bob } = tenants;
    await tenants.ask("POST", "/sessions", bob, { sessionId: "s", metadata: { owner: "bob" } });
    const seen = async (key: string) => [
      (await tenants.ask("GET", "/sessions", key)).body.sessions,
      (await tenants.ask("POST", "/sessions/search", key, { metadata: { owner: "ann" } })).body.sessions,
      (await tenants.ask("GET", "/agents", key)).body.agents.map(({ id }: { id: string }) => id),
    ];
    const [bobs, found, agents] = await seen(bob);
    expect(bobs).toMatchObject([{ id: "s", metadata: { owner: "bob" } }]);
    expect(Object.keys(bobs[0].metadata)).toEqual(["owner"]);
    expect(found).toEqual([]);
    expect(agents).toEqual(["helper"]);
    const [anns] = await seen(ann);
    expect(anns.map(({ id }: { id: string }) => id)).toContain("s");
    expect(anns.every(({ metadata }: { metadata: { owner?: string } }) => metadata.owner !== "bob")).toBe(true);
  });

  test("2.3 what a tenant's name looks like makes no way into another, and long names have room for long ids", async () => {
    const tenants = await given();
    const names = ["a", "a/b", "a~b", "a.2f.b", "ann~", "../ann", "A", "á", "😀".repeat(32), "x".repeat(64)];
    const long = "語".repeat(120);
    const own = names.map((name) => tenants.keyFor(name));
    for (const [i, key] of own.entries()) {
      const made = await tenants.ask("POST", "/sessions", key, { sessionId: `${long}-${i}`, metadata: { i } });
      expect(made.status, JSON.stringify(made.body)).toBe(201);
    }
    for (const [i, key] of own.entries()) {
      const { sessions } = (await tenants.ask("GET", "/sessions", key)).body;
      expect(sessions.map(({ id }: { id: string }) => id)).toEqual([`${long}-${i}`]);
    }
  });
}
