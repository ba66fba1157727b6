// Files that messages name by web addresses, fetched where an agent allows it: what must never be asked, however it is spelled, and
// what happens to the rest.

import dns from "node:dns";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import https, { type RequestOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { publicTest } from "../../src/content/fetch/addresses.ts";
import { type FetchContext, type FetchRules, fetchUrl, type Network } from "../../src/content/fetch/fetch-url.ts";
import { filesOf } from "../../src/events/files.ts";
import { defineTool, type Message } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { eventsOf, given, main, ofType, s } from "../agent/kit.ts";
import { png } from "./files.ts";
import { hostileAddresses, hostileUrls } from "./hostile-addresses.ts";

const anyHost: FetchRules = { hosts: ["*"] };
const image = png();

/** Nothing may be asked of it. */
const noNetwork: Network = {
  resolve: () => Promise.reject(new Error("A name was resolved.")),
  request: () => {
    throw new Error("A connection was made.");
  },
};

test(`none of ${hostileUrls.length} spellings is asked for, nor is its name resolved`, async () => {
  expect(hostileUrls.length).toBeGreaterThanOrEqual(60);
  for (const url of hostileUrls) {
    const fetched = fetchUrl(url, "image/png", { rules: anyHost, clock: systemClock, network: noNetwork });
    const ends = await fetched.then(
      () => "fetched",
      (error: Error & { code?: string }) => `${error.code} ${error.message}`,
    );
    expect(ends, url).toMatch(/^invalid_argument The file was not fetched: its address /);
  }
});

test(`none of ${hostileAddresses.length} addresses is public; public ones are`, async () => {
  const isPublic = await publicTest();
  for (const address of hostileAddresses) expect(isPublic(address), address).toBe(false);
  for (const address of ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"])
    expect(isPublic(address), address).toBe(true);
});

/** A server that stands where a public address leads; what it is asked for goes there whatever the address says. */
let server: Server;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
const asked: RequestOptions[] = [];
const resolved: string[] = [];
let leadsTo: Record<string, string[][]> = {};

beforeAll(async () => {
  server = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
});
afterEach(() => {
  asked.length = 0;
  resolved.length = 0;
  leadsTo = {};
  vi.restoreAllMocks();
});

const network: Network = {
  async resolve(hostname) {
    resolved.push(hostname);
    const answers = leadsTo[hostname] ?? [["93.184.216.34"]];
    const next = answers.length > 1 ? answers.shift()! : answers[0]!;
    return next.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  },
  request(options) {
    asked.push(options);
    const { servername: _, family: _family, ...rest } = options as RequestOptions & { servername?: string };
    return httpRequest({ ...rest, host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  },
};

const fetching = async (url: string, said?: string, more: Partial<FetchContext> = {}) => {
  const found = await fetchUrl(url, said, { rules: anyHost, clock: systemClock, network, ...more });
  if (!found) return undefined;
  const pieces: Uint8Array[] = [];
  for await (const piece of found.stream) pieces.push(piece);
  return { ...found, bytes: Buffer.concat(pieces) };
};
const send = (bytes: Uint8Array | string, headers: Record<string, string> = {}) => {
  answer = (_, response) => void response.writeHead(200, headers).end(bytes);
};

describe("a file", () => {
  test("is fetched from the address that was checked, under the name that was asked for", async () => {
    send(image, { "content-type": "text/plain" });
    const found = await fetching("https://pictures.example.com/a/tree%20one.png?size=1#x");
    expect(found).toMatchObject({ mediaType: "image/png", filename: "tree one.png" });
    expect(Buffer.compare(found!.bytes, image)).toBe(0);
    expect(asked).toMatchObject([
      {
        host: "93.184.216.34",
        family: 4,
        port: 443,
        servername: "pictures.example.com",
        path: "/a/tree%20one.png?size=1",
      },
    ]);
    expect(asked[0]!.headers).toMatchObject({ host: "pictures.example.com" });
    expect(JSON.stringify(asked[0]!.headers)).not.toMatch(/cookie|authorization/i);
  });

  test("whose name leads elsewhere the second time is asked for where it led the first time", async () => {
    send(image);
    leadsTo = { "rebind.example.com": [["93.184.216.34"], ["127.0.0.1"]] };
    await fetching("https://rebind.example.com/a.png");
    expect(resolved).toEqual(["rebind.example.com"]);
    expect(asked.map(({ host }) => host)).toEqual(["93.184.216.34"]);
    await expect(fetching("https://rebind.example.com/a.png")).rejects.toThrow("not public");
    expect(asked).toHaveLength(1);
  });

  test.each([[["127.0.0.1"]], [["93.184.216.34", "10.0.0.1"]], [["8.8.8.8", "::1"]], [["fd00::1", "8.8.8.8"]], [[]]])(
    "whose name leads to %j is not asked for",
    async (addresses) => {
      leadsTo = { "inside.example.com": [addresses] };
      await expect(fetching("https://inside.example.com/")).rejects.toMatchObject({ code: "invalid_argument" });
      expect(asked).toEqual([]);
    },
  );

  test("of a host that is not named is left alone", async () => {
    const rules = { hosts: ["example.com", "*.cdn.example.com"] };
    for (const url of [
      "https://other.example.com/",
      "https://cdn.example.com/",
      "https://notexample.com/",
      "https://example.com.evil.com/",
    ])
      expect(await fetching(url, undefined, { rules }), url).toBeUndefined();
    expect(resolved).toEqual([]);
    send("x", { "content-type": "text/plain" });
    expect(await fetching("https://a.b.cdn.example.com/", undefined, { rules })).toBeDefined();
    expect(await fetching("https://EXAMPLE.com/", undefined, { rules })).toBeDefined();
  });

  test.each([
    "http://example.com/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://inside.example.com/",
    "https://example.com:8080/",
    "file:///etc/passwd",
    "//localhost/",
    "https://user@example.com/",
    "https://[",
  ])("that leads on to %s goes no further", async (location) => {
    leadsTo = { "inside.example.com": [["10.0.0.1"]] };
    answer = (_, response) => void response.writeHead(302, { location }).end();
    await expect(fetching("https://example.com/")).rejects.toMatchObject({ code: "invalid_argument" });
    expect(asked).toHaveLength(1);
  });

  test("may lead on three times, within the hosts that are named", async () => {
    answer = (request, response) => {
      const step = Number(request.url!.slice(1));
      if (step < 3) response.writeHead(307, { location: `/${step + 1}` }).end();
      else response.end(image);
    };
    expect((await fetching("https://example.com/0"))?.mediaType).toBe("image/png");
    expect(resolved).toHaveLength(4);
    answer = (_, response) => void response.writeHead(301, { location: "/" }).end();
    await expect(fetching("https://example.com/")).rejects.toThrow("redirected too often");
    answer = (_, response) => void response.writeHead(301, { location: "https://elsewhere.com/" }).end();
    const rules = { hosts: ["example.com"] };
    expect(await fetching("https://example.com/", undefined, { rules })).toBeUndefined();
  });

  test("that says it is too large is not read; one that turns out to be is broken off", async () => {
    const rules = { ...anyHost, maxBytes: 1000 };
    send(new Uint8Array(1001));
    await expect(fetching("https://example.com/", undefined, { rules })).rejects.toThrow("more than 1000 bytes");
    let closed: () => void = () => {};
    const isClosed = new Promise<void>((resolve) => {
      closed = resolve;
    });
    answer = (_, response) => {
      response.on("close", closed);
      const more = () => response.write(Buffer.alloc(10_000, 65), () => !response.destroyed && more());
      more();
    };
    await expect(fetching("https://example.com/", undefined, { rules })).rejects.toThrow("more than 1000 bytes");
    await isClosed;
  });

  test("that never ends is given up, as is one that never begins", async () => {
    const rules = { ...anyHost, timeoutMs: 20 };
    answer = () => {};
    await expect(fetching("https://example.com/", undefined, { rules })).rejects.toThrow("took longer than 0.02 s");
    answer = (_, response) => void response.write(image);
    await expect(fetching("https://example.com/", undefined, { rules })).rejects.toThrow("took longer than 0.02 s");
    const stuck = { ...network, resolve: () => new Promise<never>(() => {}) };
    await expect(fetching("https://example.com/", undefined, { rules, network: stuck })).rejects.toThrow("took longer");
  });

  test("is what its bytes say", async () => {
    const typed = async (bytes: Uint8Array | string, said?: string, told = "") => {
      send(bytes, told ? { "content-type": told } : {});
      return (await fetching("https://example.com/a", said).catch((error: Error) => ({ mediaType: error.message })))
        ?.mediaType;
    };
    expect(await typed("<html>Sign in</html>", "image/png", "image/png")).toContain("it is no image/png");
    expect(await typed("<html>Sign in</html>", undefined, "application/pdf")).toContain("it is no application/pdf");
    expect(await typed(image, "application/pdf")).toBe("image/png");
    expect(await typed("a,b\n", "text/csv", "text/html")).toBe("text/csv");
    expect(await typed("a,b\n", undefined, "text/csv; charset=utf-8")).toBe("text/csv");
    expect(await typed("a,b\n")).toBe("application/octet-stream");
    expect(await typed("a,b\n", "image/*", "text/csv")).toBe("text/csv");
  });

  test.each([
    [404, {}],
    [204, {}],
    [206, {}],
    [200, { "content-encoding": "gzip" }],
    [200, { "content-encoding": "br" }],
  ])("with the answer %d %j is none", async (status, headers) => {
    answer = (_, response) => void response.writeHead(status, headers as Record<string, string>).end();
    await expect(fetching("https://example.com/")).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("whose server hangs up is none", async () => {
    answer = (request) => void request.socket.destroy();
    await expect(fetching("https://example.com/")).rejects.toMatchObject({ code: "invalid_argument" });
    answer = (request, response) =>
      response.writeHead(200, { "content-length": "99" }).write(image.subarray(0, 40), () => request.socket.destroy());
    await expect(fetching("https://example.com/")).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("an agent that may fetch", () => {
  const url = "https://example.com/tree.png";
  const file = { type: "file", mediaType: "image/png", data: { type: "url", url } } as const;
  const fetchUrls = { hosts: ["example.com"] };
  const online = () => {
    vi.spyOn(dns.promises, "lookup").mockImplementation((async (name: string) => network.resolve(name)) as never);
    vi.spyOn(https, "request").mockImplementation(((options: RequestOptions) => network.request(options)) as never);
  };

  test("stores the file once, with where it is from; later turns and forks need no network", async () => {
    online();
    send(image);
    const { agent, model } = await given(["A.", "B."], { content: { fetchUrls } });
    await agent.run([file, { type: "file", data: url }], s).text();
    expect(asked).toHaveLength(2);
    answer = (_, response) => void response.writeHead(500).end();
    const fork = await agent.forkBranch(main, { newBranchId: "fork" });
    await agent.run("Again.", { sessionId: "s", branchId: fork.id }).text();
    expect(asked).toHaveLength(2);
    for (const { prompt } of model.calls)
      expect(prompt.flatMap((message) => filesOf(message as Message)).map(({ data }) => data.type)).toEqual([
        "data",
        "data",
      ]);
    const stored = await agent.listContent(main);
    expect(stored).toMatchObject([{ size: image.length, mediaType: "image/png", name: "tree.png", origin: "input" }]);
    const { messages } = await agent.loadBranch(main);
    expect(filesOf(messages[0]!)[0]!.data).toEqual({ type: "url", url: stored[0]!.uri, originalUrl: url });
  });

  test("fetches what its tools name, too", async () => {
    online();
    send(image);
    const look = defineTool({
      description: "Looks.",
      input: { jsonSchema: { type: "object", properties: {} } },
      execute: () => ({ type: "content", value: [file] }),
      toOutput: (output) => output as never,
    });
    const { agent, model } = await given([{ calls: [{ name: "look", input: {} }] }, "A tree."], {
      content: { fetchUrls },
      tools: { look },
    });
    await agent.run("Look.", s).text();
    expect(filesOf(model.calls[1]!.prompt.at(-1) as Message)).toMatchObject([{ data: { type: "data" } }]);
  });

  test("tells what it can't fetch; the address stays", async () => {
    online();
    leadsTo = { "example.com": [["10.0.0.1"]] };
    const scripted = scriptedModel(["Yes.", "Yes."]);
    const model = { ...scripted, provider: "somebody", supportedUrls: { "image/*": [/^https:/] } };
    const { agent } = await given([], { model, content: { fetchUrls } });
    const events = await eventsOf(agent.run([file], s));
    expect(ofType(events, "content-fail")).toMatchObject([
      { error: { message: expect.stringContaining("not public") } },
    ]);
    expect(asked).toEqual([]);
    expect(filesOf(scripted.calls[0]!.prompt[0] as Message)).toMatchObject([{ data: { url: new URL(url) } }]);
    expect(await agent.listContent(main)).toEqual([]);
  });

  test("keeps nothing of a file that breaks off", async () => {
    online();
    answer = (request, response) =>
      response.writeHead(200, { "content-length": "9999" }).write(image, () => request.socket.destroy());
    const { agent, model } = await given(["Yes."], { content: { fetchUrls } });
    await agent.run([file], s).text();
    expect(await agent.listContent(main)).toEqual([]);
    expect(JSON.stringify(model.calls[0]!.prompt)).toContain("can't open https://example.com/tree.png");
  });

  test.each([
    [{}],
    [{ hosts: "example.com" }],
    [{ hosts: ["https://example.com"] }],
    [{ hosts: ["Example.com"] }],
    [{ hosts: ["localhost"] }],
    [{ host: [] }],
  ])("by no rules such as %j", async (rules) => {
    await expect(given([], { content: { fetchUrls: rules as never } })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});
