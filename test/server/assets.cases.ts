// Assets: clause 11.4 of PROTOCOL.md. Over real connections: nothing makes a path right on the way.

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type AssetsOptions, createServer, type ServerOptions } from "../../src/server/index.ts";
import { expectProblem, freshDirectory, given, type OpenStore, quiet } from "./kit.ts";

const anybody = { authorization: "" };
const browser = { ...anybody, accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const app = {
  "index.html": '<!doctype html><script type="module" src="./assets/app-a1b2c3d4.js"></script><style>p{}</style>',
  "assets/app-a1b2c3d4.js": "console.log(1)",
  "assets/style.css": "p{}",
  "logo.svg": "<svg/>",
  "data.bin": new Uint8Array([1, 2, 3]),
};

export function describeAssets(open: OpenStore): void {
  const start = (assets: AssetsOptions, more: Partial<ServerOptions> = {}) =>
    given(["Hello."], { open, assets, ...more, ...(more.prefix !== undefined && { isSecond: true }) });

  test("11.4 an app is given to anybody, each file with its type, and only its own scripts run", async () => {
    const { ask } = await start({ files: app });
    const get = (path: string) => ask("GET", path, undefined, anybody);
    const page = await get("/");
    expect(page).toMatchObject({ status: 200, body: app["index.html"] });
    expect(page.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='; img-src 'self' blob: data:; font-src 'self'; media-src 'self' blob:; manifest-src 'self'; worker-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    const types = {
      "/index.html": "text/html; charset=utf-8",
      "/assets/app-a1b2c3d4.js": "text/javascript; charset=utf-8",
      "/assets/style.css": "text/css; charset=utf-8",
      "/logo.svg": "image/svg+xml; charset=utf-8",
      "/data.bin": "application/octet-stream",
    };
    for (const [path, type] of Object.entries(types)) {
      const { status, headers } = await get(path);
      expect([path, status, headers.get("content-type")]).toEqual([path, 200, type]);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-frame-options")).toBe("DENY");
    }
    expectProblem(await ask("POST", "/index.html", {}, anybody), 401, "unauthorized");
    expectProblem(await get("/missing.js"), 401, "unauthorized");
    expectProblem(await ask("GET", "/missing.js"), 404, "route_not_found");
    expectProblem(await ask("GET", "/", undefined, { ...anybody, host: "evil.example" }), 421, "host_refused");
  });

  test("11.4 what a client has is not sent again, and only hashed names are kept without asking", async () => {
    const { ask } = await start({ files: app });
    const get = (path: string, headers = {}) => ask("GET", path, undefined, { ...anybody, ...headers });
    const first = await get("/");
    const etag = first.headers.get("etag")!;
    expect(etag).toMatch(/^"[\w+/]{27}"$/);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await get("/", { "if-none-match": known });
      expect(again).toMatchObject({ status: 304, body: "" });
      expect(again.headers.get("etag")).toBe(etag);
      expect(again.headers.get("cache-control")).toBe("no-cache");
    }
    expect((await get("/", { "if-none-match": '"other"' })).status).toBe(200);
    expect((await get("/logo.svg", { "if-none-match": etag })).status).toBe(200);
    const cached = async (path: string) => (await get(path)).headers.get("cache-control");
    expect(await cached("/")).toBe("no-cache");
    expect(await cached("/assets/style.css")).toBe("no-cache");
    expect(await cached("/assets/app-a1b2c3d4.js")).toBe("public, max-age=31536000, immutable");
    const names = ["Roboto-BoldItalic.ttf", "report-20240101.pdf", "my-component.js", "app.3fA9x2kd.js", "v/x.js"];
    const own = await start({ files: Object.fromEntries(names.map((name) => [name, "x"])) });
    const policies = await Promise.all(names.map((name) => own.ask("GET", `/${name}`, undefined, anybody)));
    expect(policies.map(({ headers }) => /immutable/.test(headers.get("cache-control")!))).toEqual([
      ...[false, false, false],
      true,
      false,
    ]);
    const told = await start({ files: { "v/x.js": "x" }, immutable: /^v\//g });
    for (let i = 0; i < 2; i++) {
      const { headers } = await told.ask("GET", "/v/x.js", undefined, anybody);
      expect(headers.get("cache-control")).toMatch(/immutable/);
    }
  });

  test("11.4 a compressed copy is given to whoever accepts it, and is no file of its own", async () => {
    const packed = Buffer.from("packed");
    const { ask } = await start({ files: { ...app, "logo.svg.br": packed, "logo.svg.gz": Buffer.from("zipped") } });
    const get = (accepted: string) => ask("GET", "/logo.svg", undefined, { ...anybody, "accept-encoding": accepted });
    const best = await get("gzip, deflate, br");
    expect([best.status, best.headers.get("content-encoding"), best.body]).toEqual([200, "br", "packed"]);
    expect(best.headers.get("vary")).toContain("accept-encoding");
    expect((await get("gzip, br;q=0")).headers.get("content-encoding")).toBe("gzip");
    const plain = await get("identity");
    expect([plain.headers.get("content-encoding"), plain.body]).toEqual([null, "<svg/>"]);
    expect(plain.headers.get("etag")).not.toBe(best.headers.get("etag"));
    expectProblem(await ask("GET", "/logo.svg.br"), 404, "route_not_found");
  });

  test("11.4, 2.1 Studio is given to anybody, under a policy without inline scripts, and its names are kept for a year", async () => {
    const { ask } = await given(["Hello."], { open, studio: { path: "/studio" } });
    const page = await ask("GET", "/studio/", undefined, anybody);
    expect(page.headers.get("content-security-policy")).toContain("require-trusted-types-for 'script'");
    expect(page.headers.get("content-security-policy")).not.toContain("unsafe");
    const [, script] = /src="\.\/(assets\/[^"]+\.js)"/.exec(page.body)!;
    const { status, headers } = await ask("GET", `/studio/${script}`, undefined, {
      ...anybody,
      "accept-encoding": "br",
    });
    expect([status, headers.get("content-encoding")]).toEqual([200, "br"]);
    expect(headers.get("cache-control")).toContain("immutable");
    expectProblem(await ask("GET", "/sessions", undefined, anybody), 401, "unauthorized");
  });

  test("11.4 HEAD has the headers of GET and no body", async () => {
    const { ask } = await start({ files: app });
    const [head, get] = [await ask("HEAD", "/", undefined, anybody), await ask("GET", "/", undefined, anybody)];
    expect(head).toMatchObject({ status: 200, body: "" });
    for (const name of ["content-type", "content-length", "etag", "content-security-policy"]) {
      expect(head.headers.get(name), name).toBe(get.headers.get(name));
    }
    expect(head.headers.get("content-length")).toBe(String(app["index.html"].length));
  });

  test("11.4 a browser that opens a place in the app gets its page; nothing else does, and no route is hidden", async () => {
    const { ask } = await start({ files: app });
    const page = app["index.html"];
    for (const path of ["/settings", "/a/b/c", "/s%20x"]) {
      expect((await ask("GET", path, undefined, browser)).body, path).toBe(page);
      const navigate = { ...anybody, "sec-fetch-mode": "navigate" };
      expect((await ask("GET", path, undefined, navigate)).body, path).toBe(page);
    }
    for (const path of ["/health", "/sessions/x", "/agents", "/audit", "/missing.js"]) {
      expectProblem(await ask("GET", path, undefined, browser), 401, "unauthorized");
    }
    expectProblem(
      await ask("GET", "/settings", undefined, { ...browser, "sec-fetch-mode": "cors" }),
      401,
      "unauthorized",
    );
    expectProblem(await ask("GET", "/settings", undefined, anybody), 401, "unauthorized");
    expect((await ask("GET", "/health")).body).toEqual({ status: "ok" });
    const without = await start({ files: app, fallback: false });
    expectProblem(await without.ask("GET", "/settings", undefined, browser), 401, "unauthorized");
  });

  test("11.4 a link on another site leads to the app and to nothing else", async () => {
    const { ask } = await start({ files: app });
    const link = {
      ...browser,
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    };
    expect((await ask("GET", "/", undefined, link)).status).toBe(200);
    expectProblem(await ask("GET", "/", undefined, { ...link, "sec-fetch-dest": "iframe" }), 403, "origin_refused");
    expectProblem(
      await ask("GET", "/logo.svg", undefined, { ...link, "sec-fetch-mode": "no-cors" }),
      403,
      "origin_refused",
    );
    expectProblem(await ask("GET", "/health", undefined, { ...link, authorization: "x" }), 403, "origin_refused");
  });

  test("11.4 below a prefix and a path of its own, relative addresses hold", async () => {
    const { ask } = await start({ files: app, path: "/app" }, { prefix: "/api", page: "<p>Start</p>" });
    const bare = await ask("GET", "/api/app?x=1", undefined, browser);
    expect([bare.status, bare.headers.get("location")]).toEqual([308, "/api/app/?x=1"]);
    expect((await ask("GET", "/api/app/", undefined, browser)).body).toBe(app["index.html"]);
    expect((await ask("GET", "/api/app/logo.svg", undefined, anybody)).status).toBe(200);
    expect((await ask("GET", "/api/", undefined, browser)).body).toBe("<p>Start</p>");
    for (const path of ["/app/", "/", "/apple/logo.svg", "/api/appx"]) {
      expectProblem(await ask("GET", path, undefined, browser), 401, "unauthorized");
    }
  });

  test("11.4 a mount is not hidden by assets", async () => {
    const routes = [
      { name: "x", method: "GET" as const, path: "/*", scope: "read" as const, handle: () => new Response("in") },
    ];
    const { ask } = await start(
      { files: { ...app, "chat/x.txt": "out" } },
      { mounts: [{ name: "chat", path: "/chat", routes }] },
    );
    expectProblem(await ask("GET", "/chat/x.txt", undefined, browser), 401, "unauthorized");
    expect((await ask("GET", "/chat/x.txt")).body).toBe("in");
  });

  test("11.4 a directory: its files are given, hidden ones are not, and no path leads out of it", async () => {
    const outside = freshDirectory();
    const inside = join(outside, "app");
    writeFileSync(join(outside, "secret.txt"), "secret");
    mkdirSync(join(inside, "assets", ".git"), { recursive: true });
    writeFileSync(join(inside, "index.html"), "<p>App</p>");
    writeFileSync(join(inside, "assets", "a b.txt"), "text");
    writeFileSync(join(inside, ".env"), "secret");
    writeFileSync(join(inside, "assets", ".git", "config"), "secret");
    symlinkSync(join(inside, "index.html"), join(inside, "linked.html"));
    const { ask } = await start({ files: inside });
    const get = (path: string) => ask("GET", path, undefined, browser);
    expect((await get("/")).body).toBe("<p>App</p>");
    expect((await get("/assets/a%20b.txt")).body).toBe("text");
    expect((await get("/linked.html")).body).toBe("<p>App</p>");
    // What is written later, or becomes a link, is not read.
    writeFileSync(join(inside, "later.txt"), "secret");
    symlinkSync(join(outside, "secret.txt"), join(inside, "link.txt"));
    const attacks = [
      ...[
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/%2e%2e%2fsecret.txt",
      ],
      ...["/..\\secret.txt", "/..%5csecret.txt", "//secret.txt", "/%00", "/index.html%00.js", "/%252e%252e/secret.txt"],
      ...["/.env", "/%2eenv", "/assets/.git/config", "/later.txt", "/link.txt", "/%c0%ae%c0%ae/secret.txt"],
      ...[
        "/./.env",
        "/....//secret.txt",
        "/assets/..;/secret.txt",
        `/${outside}/secret.txt`,
        `/${"../".repeat(20)}etc/passwd`,
      ],
    ];
    for (const path of attacks) {
      const { status, body } = await get(path);
      expect(JSON.stringify(body), path).not.toMatch(/secret"|root:/);
      if (status === 200) expect(body, path).toBe("<p>App</p>");
      else expect([400, 401], path).toContain(status);
    }
    for (const path of ["/assets", "/assets/"]) expect((await ask("GET", path, undefined, anybody)).status).toBe(401);
  });

  test.each<[string, (folder: string) => ServerOptions, RegExp]>([
    [
      "a directory that is not there",
      (folder) => ({ assets: { files: join(folder, "none") } }),
      /The assets directory ".*" does not exist/,
    ],
    ["no file", () => ({ assets: { files: {} } }), /at least one file/],
    ["a name with dots", () => ({ assets: { files: { "../x": "x" } } }), /An asset's path must be like/],
    ["a hidden name", () => ({ assets: { files: { "a/.env": "x" } } }), /An asset's path must be like/],
    ["a name with a backslash", () => ({ assets: { files: { "a\\b": "x" } } }), /An asset's path must be like/],
    ["a name with NUL", () => ({ assets: { files: { "a\0": "x" } } }), /An asset's path must be like/],
    [
      "a path of built-in routes",
      () => ({ assets: { files: app, path: "/sessions" } }),
      /reserved for built-in routes/,
    ],
    ["a path that is none", () => ({ assets: { files: app, path: "app/" } }), /must be a path such as "\/app"/],
    ["a fallback that is not there", () => ({ assets: { files: app, fallback: "x.html" } }), /not one of the files/],
    ["a page at the same place", () => ({ assets: { files: app }, page: "<p>" }), /can't both be at "\/"/],
    [
      "the path of a mount",
      () => ({ assets: { files: app, path: "/chat" }, mounts: [{ name: "c", path: "/chat/a", routes: [] }] }),
      /overlap/,
    ],
    [
      "a link out of the directory",
      (folder) => {
        symlinkSync("/etc/hostname", join(folder, "name.txt"));
        return { assets: { files: folder } };
      },
      /The asset "name.txt" is a link to a file outside/,
    ],
    [
      "a link to a hidden file",
      (folder) => {
        writeFileSync(join(folder, ".env"), "x");
        symlinkSync(join(folder, ".env"), join(folder, "env.txt"));
        return { assets: { files: folder } };
      },
      /The asset "env.txt" is a link to a file outside/,
    ],
    [
      "a link to a directory",
      (folder) => {
        mkdirSync(join(folder, "a"));
        symlinkSync(join(folder, "a"), join(folder, "b"));
        return { assets: { files: folder } };
      },
      /is not a file/,
    ],
  ])("11.4 a server is not made with assets that have %s", (_, options, sentence) => {
    expect(() => createServer({ logger: quiet, ...options(freshDirectory()) })).toThrow(sentence);
  });
}
