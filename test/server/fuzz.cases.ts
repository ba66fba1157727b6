// Every route with everything that can be said to it: never a 5xx, and the process stays what it was.

import fc from "fast-check";
import { expect, test } from "vitest";
import { scriptedModel } from "../../src/scripted/index.ts";
import { type Route, routes } from "../../src/wire/index.ts";
import { given, type OpenStore } from "./kit.ts";

const all = (Object.entries(routes) as [string, Route][]).map(([name, route]) => ({ name, ...route }));

const nasty = fc.constantFrom(
  "s",
  "main",
  "helper",
  "f",
  "__proto__",
  "constructor",
  "toString",
  "..",
  "%2e%2e",
  "%2F",
  "a%00b",
  "~s",
  "~agents//~x",
  "*",
  "' OR 1=1 --",
  "%",
  "\\",
  "CON",
  "😀",
  "%ED%A0%80",
  "x".repeat(200),
  "0",
  "-1",
  "null",
  "undefined",
  "main/../main",
);
const segment = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("s", "main", "helper") },
  nasty,
  fc.string({ maxLength: 20 }),
);

/** Keys that schemas know, so that values get past them, and others. */
const key = fc.oneof(
  fc.constantFrom(
    "sessionId",
    "metadata",
    "limit",
    "cursor",
    "branchId",
    "name",
    "tags",
    "fromMessageId",
    "fromSeq",
    "fromMessageIndex",
    "newBranchId",
    "toSeq",
    "toMessageId",
    "toMessageIndex",
    "input",
    "ifActive",
    "config",
    "expectedRunId",
    "reason",
    "interactionId",
    "answer",
    "agentId",
    "model",
    "checkpointId",
    "label",
    "state",
    "__proto__",
    "constructor",
  ),
  fc.string({ maxLength: 8 }),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    nasty,
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constantFrom(null, "queue", "interrupt", "reject", "none", "current", 1e308, Number.MAX_SAFE_INTEGER),
    fc.array(tie("any"), { maxLength: 3 }),
    fc.dictionary(key, tie("any"), { maxKeys: 4, noNullPrototype: true }),
  ),
})).any;
const body = fc.oneof(
  fc.dictionary(key, value, { maxKeys: 5, noNullPrototype: true }).map((each) => JSON.stringify(each)),
  value.map((each) => JSON.stringify(each) ?? ""),
  fc.string(),
  fc.constantFrom("{", "[".repeat(100_000), '{"__proto__":{"x":1}}', "\uFEFF{}", '{"a":1e999}', ""),
);
const contentType = fc.constantFrom(
  "application/json",
  "application/json; charset=utf-8",
  "text/plain",
  "multipart/form-data; boundary=x",
  "",
);
const query = fc.oneof(
  { weight: 3, arbitrary: fc.constant("") },
  fc.webQueryParameters().map((each) => `?${each}`),
  fc
    .tuple(fc.constantFrom("after", "limit", "last", "recursive", "cursor", "agent"), nasty)
    .map(([name, each]) => `?${name}=${encodeURIComponent(each)}`),
);

export function describeFuzz(open: OpenStore): void {
  test.each(all)("$method $path never fails for what it is told", async (route) => {
    const models = { "scripted/a": scriptedModel(() => "Hi.") };
    const g = await given(() => "Hi.", {
      open,
      definitions: { models },
      limits: { requestsPerSecond: 1e9, burst: 1e9, heartbeatMs: 1000 },
    });
    const count = (route.path.match(/:/g) ?? []).length;
    const input = fc.record({
      segments: fc.array(segment, { minLength: count, maxLength: count }),
      body,
      contentType,
      query,
      isEncoded: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(input, async ({ segments, body, contentType, query, isEncoded }) => {
        let i = 0;
        const path = route.path.replace(/:\w+/g, () => (isEncoded ? wellFormed(segments[i++]!) : segments[i++]!));
        // What can't be the first line of a request can't be asked.
        if (/[^\u0021-\u00ff]/.test(path + query)) return;
        const sent = route.method === "GET" ? undefined : body;
        const headers: Record<string, string> = contentType ? { "content-type": contentType } : {};
        const answer = await g.ask(route.method, path + query, sent, headers);
        expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(500);
        if (answer.status >= 400) expect(answer.body).toMatchObject({ status: answer.status });
      }),
      { numRuns: 40 },
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect((await g.ask("GET", "/health")).status).toBe(200);
  });
}

function wellFormed(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return "x";
  }
}
