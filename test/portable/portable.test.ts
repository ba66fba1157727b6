// A server is a fetch handler that needs no Node: bundled for a neutral platform, the same file answers in plain Node, where
// nothing is installed, and in workerd, where there is none of Node's modules and globals.

import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { builtinModules, createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { build, type Metafile } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";

const require = createRequire(import.meta.url);
/** The path of its binary. */
const { default: workerd } = require("workerd") as { default: string };
const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "bough-portable-"));
let metafile: Metafile;

beforeAll(async () => {
  const bundled = await build({
    entryPoints: [join(import.meta.dirname, "worker.mjs")],
    outfile: join(folder, "worker.mjs"),
    ...{ bundle: true, format: "esm", platform: "neutral", metafile: true, logLevel: "error" },
  });
  metafile = bundled.metafile;
  copyFileSync(join(import.meta.dirname, "in-node.mjs"), join(folder, "in-node.mjs"));
  writeFileSync(join(folder, "config.capnp"), workerdConfig);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Without `nodejs_compat`: no module of Node, no `process`, no `Buffer`. */
const workerdConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [( name = "main", worker = (
    modules = [( name = "worker.mjs", esModule = embed "worker.mjs" )],
    compatibilityDate = "2024-08-01",
    durableObjectNamespaces = [( className = "Bough", uniqueKey = "bough", preventEviction = true )],
    durableObjectStorage = ( inMemory = void ),
    bindings = [( name = "BOUGH", durableObjectNamespace = "Bough" )],
  ))],
  sockets = [( name = "http", address = "127.0.0.1:0", http = (), service = "main" )],
);
`;

test("the bundle asks for no module of Node, nor for anything that is not in it", () => {
  const inputs = Object.keys(metafile.inputs);
  expect(inputs.filter((file) => /node_modules\/(ws|@hono|pg|redis|fs-native)/.test(file))).toEqual([]);
  const asked = Object.values(metafile.inputs).flatMap(({ imports }) => imports.filter(({ external }) => external));
  expect(
    asked.map(({ path }) => path).filter((path) => path.startsWith("node:") || builtinModules.includes(path)),
  ).toEqual([]);
  expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([]);
  expect(readFileSync(join(folder, "worker.mjs"), "utf8")).not.toMatch(/\bfrom\s*["']node:|require\(["']/);
});

describe.each([
  ["plain Node", process.execPath, ["in-node.mjs"]],
  ["workerd", workerd, ["serve", "config.capnp", "--control-fd=1"]],
])("in %s", (_, command, words) => {
  let child: ChildProcess;
  let url: string;
  let errors = "";

  beforeAll(async () => {
    child = spawn(command, words, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    child.stderr!.on("data", (text) => {
      errors += text;
    });
    url = await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout! }).on("line", (line) => {
        const { port } = JSON.parse(line) as { port?: number };
        if (port !== undefined) resolve(`http://127.0.0.1:${port}`);
      });
      child.once("exit", (code) => reject(new Error(`It ended with ${code}: ${errors}`)));
    });
  });

  afterAll(() => void child.kill("SIGKILL"));

  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method,
      headers: {
        authorization: "Bearer a-token-for-the-tests",
        ...(body !== undefined && !(body instanceof FormData) && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
    });

  test("a session is created, an input submitted and its run read as server-sent events", async () => {
    const created = await ask("POST", "/sessions", { sessionId: "s" });
    expect(created.status, errors).toBe(201);
    const scope = "/agents/helper/sessions/s/branches/main";
    const live = await ask("GET", `${scope}/events/live`);
    const submitted = await ask("POST", `${scope}/inputs`, { input: "Hi" }, { "idempotency-key": "once" });
    expect([submitted.status, await submitted.json()]).toEqual([202, expect.objectContaining({ status: "started" })]);
    const reader = live.body!.getReader();
    let told = "";
    while (!told.includes('"turn.committed"')) {
      const { done, value } = await reader.read();
      if (done) expect.fail(`${told}\n${errors}`);
      told += new TextDecoder().decode(value);
    }
    await reader.cancel();
    expect(told).toContain('"text-delta"');
    const again = await ask("POST", `${scope}/inputs`, { input: "Hi" }, { "idempotency-key": "once" });
    expect(again.status).toBe(202);
    const { messages } = (await (await ask("GET", `${scope}/state`)).json()) as { messages: { role: string }[] };
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  });

  test("a mount streams a run, and an asset is given to anybody", async () => {
    expect((await ask("POST", "/sessions", { sessionId: "m" })).status).toBe(201);
    const streamed = await (await ask("POST", "/texts/m", { input: "Hi" })).text();
    expect(streamed.replaceAll(/data: |\n/g, "")).toMatch(/^Hello there\.$/);
    const page = await fetch(`${url}/`);
    expect([page.status, await page.text()]).toEqual([200, "<p>App</p>"]);
    const etag = page.headers.get("etag")!;
    expect((await fetch(`${url}/`, { headers: { "if-none-match": etag } })).status).toBe(304);
  });

  test("credentials are checked, and files go up and come down", async () => {
    const wrong = { authorization: "Bearer a-token-of-somebody" };
    expect((await ask("GET", "/health", undefined, wrong)).status).toBe(401);
    expect((await ask("POST", "/sessions", { sessionId: "f" })).status).toBe(201);
    const form = new FormData();
    form.append("file", new Blob([new Uint8Array(200_000).fill(7)]), "seven.bin");
    const uploaded = await ask("POST", "/sessions/f/branches/main/content", form);
    const { id, size, name } = (await uploaded.json()) as { id: string; size: number; name: string };
    expect([uploaded.status, size, name]).toEqual([201, 200_000, "seven.bin"]);
    const down = await ask("GET", `/sessions/f/branches/main/content/${id}`);
    const bytes = new Uint8Array(await down.arrayBuffer());
    expect(bytes.length).toBe(200_000);
    expect(bytes.every((byte) => byte === 7)).toBe(true);
  });

  test("the client talks to it", async () => {
    const client = createClient({ url, token: "a-token-for-the-tests", transport: "sse" });
    await client.createSession("c");
    const branch = client.branch({ agentId: "helper", sessionId: "c" });
    const events = branch.watch();
    await branch.submit("Hi");
    const types: string[] = [];
    for await (const { type } of events) {
      types.push(type);
      if (type === "turn.committed") break;
    }
    expect(types.filter((type) => type === "message.added")).toHaveLength(2);
  });
});

test("what only Node can do says so where there is no Node", async () => {
  const entry = `
    import { createServer, serve } from "bough/server";
    export const told = [];
    export const listening = serve(createServer({ token: "a-token-for-the-tests" })).catch(({ message }) => message);
    export const stored = createServer({ store: "sqlite:./x.db" , token: "a-token-for-the-tests", audit: false, hosts: ["*"], logger: { warn: (_, { message }) => void told.push(message) } });
  `;
  const outfile = join(folder, "refusing.mjs");
  await build({
    stdin: { contents: entry, resolveDir: root },
    outfile,
    ...{ bundle: true, format: "esm", platform: "neutral", logLevel: "error" },
  });
  const { listening, stored, told } = await import(outfile);
  expect(await listening).toBe("serve needs Node. On other platforms, pass requests to server.fetch.");
  const headers = { authorization: "Bearer a-token-for-the-tests" };
  expect((await stored.fetch(new Request("http://localhost/sessions", { headers }))).status).toBe(501);
  expect(told[0]).toMatch(/Stores can be named by directory or URL only on Node/);
  await stored.close();
});

test.each(["bough", "bough/client", "bough/scripted", "bough/server", "bough/stores/memory"])(
  "%s is bundled for a neutral platform, with nothing of Node",
  async (subpath) => {
    const { metafile, outputFiles } = await build({
      stdin: { contents: `export * from ${JSON.stringify(subpath)};`, resolveDir: root },
      ...{ bundle: true, format: "esm", platform: "neutral", metafile: true, logLevel: "error", write: false },
    });
    expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([]);
    expect(outputFiles[0]!.text).not.toMatch(/\bfrom\s*["']node:|require\(["']/);
  },
);
