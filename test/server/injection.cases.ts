// What looks like a piece of a query, a pattern, a path or a script is a text like any other, in ids, metadata and filters.

import { expect, test } from "vitest";
import { type Answer, expectProblem, given, type OpenStore, say } from "./kit.ts";

/** Texts that mean something to a database, a pattern, a script, a shell, a file system or an object. */
const texts = [
  "' OR '1'='1",
  "'; DROP TABLE sessions; --",
  '" OR ""="',
  "\\'",
  "$1",
  "$.a[*]",
  "$.**",
  '{"$ne":null}',
  "%",
  "_",
  "%%%",
  "a%",
  "*",
  "?",
  "[a-z]*",
  "{s}:*",
  "redis.call('FLUSHALL')",
  "]] return redis.call('KEYS','*') --",
  "\u0000",
  "a\u0000b",
  "\ud800",
  "a\udfffb",
  "\r\nSET x y\r\n",
  "../../../etc/passwd",
  "..\\..\\x",
  "CON",
  "a.",
  "~namespace",
  "__proto__",
  "constructor",
  "toString",
  "null",
  "true",
  "0",
  "1e3",
  "",
  " ",
  "\u2028",
  "é",
  "e\u0301",
  "K",
  "ﬁ",
  "İ",
  "x".repeat(1024),
];

const idsOf = ({ body }: Answer): string[] => body.sessions.map(({ id }: { id: string }) => id).sort();

export function describeInjection(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("3.3 a value is found by itself and by nothing else, whatever it looks like", async () => {
    const { ask } = await start([]);
    for (const [i, text] of texts.entries()) {
      const made = await ask("POST", "/sessions", { sessionId: `v${i}`, metadata: { k: text, other: "x" } });
      expect(made.status, JSON.stringify([text, made.body])).toBe(201);
      expect((await ask("GET", `/sessions/v${i}`)).body.metadata.k).toBe(text);
    }
    for (const [i, text] of texts.entries()) {
      const found = await ask("POST", "/sessions/search", { metadata: { k: text } });
      expect(idsOf(found), JSON.stringify(text)).toEqual([`v${i}`]);
      expect(idsOf(await ask("POST", "/sessions/search", { metadata: { k: text, other: "y" } }))).toEqual([]);
    }
    expect(idsOf(await ask("GET", "/sessions?limit=1000"))).toHaveLength(texts.length + 1);
  });

  test("3.3 a key is found by itself and by nothing else, or can't be asked for", async () => {
    const { ask } = await start([]);
    const keys = [...texts, "a.b", "a-b", "a_b", "A", "a", "x".repeat(64), "x".repeat(65)];
    for (const [i, key] of keys.entries()) {
      const made = await ask("POST", "/sessions", `{"sessionId":"k${i}","metadata":{${JSON.stringify(key)}:"here"}}`, {
        "content-type": "application/json",
      });
      if (["__proto__", "constructor"].includes(key)) expectProblem(made, 400, "invalid_argument");
      else expect(made.status, JSON.stringify([key, made.body])).toBe(201);
    }
    for (const [i, key] of keys.entries()) {
      const filter = `{"metadata":{${JSON.stringify(key)}:"here"}}`;
      const found = await ask("POST", "/sessions/search", filter, { "content-type": "application/json" });
      if (found.status !== 200) expectProblem(found, 400, "invalid_argument");
      else if (key === "constructor") expect(idsOf(found)).toEqual([]);
      else expect(idsOf(found), JSON.stringify(key)).toEqual(key === "~namespace" ? [] : [`k${i}`]);
    }
    expect(({} as { here?: string }).here).toBeUndefined();
  });

  test("1.4 an id names one thing, or can't be one", async () => {
    const { ask } = await start([]);
    const made: string[] = [];
    for (const text of texts) {
      const answer = await ask("POST", "/sessions", { sessionId: text, metadata: { mine: text } });
      if (answer.status === 201) made.push(text);
      else expectProblem(answer, text.length > 128 || answer.status === 400 ? 400 : 0, "invalid_argument");
    }
    expect(made.length).toBeGreaterThan(20);
    for (const id of made) {
      const at = `/sessions/${encodeURIComponent(id)}`;
      expect((await ask("GET", at)).body, id).toMatchObject({ id, metadata: { mine: id } });
      const branch = await ask("POST", `/agents/helper${at}/branches`, { branchId: id, name: id, tags: [id] });
      expect(branch, id).toMatchObject({ status: 201, body: { id, name: id, tags: [id] } });
      expect((await ask("DELETE", `${at}/branches/${encodeURIComponent(id)}`)).status, id).toBe(204);
    }
    for (const [i, id] of made.entries()) {
      expect((await ask("DELETE", `/sessions/${encodeURIComponent(id)}`)).status, id).toBe(204);
      expect(idsOf(await ask("GET", "/sessions?limit=1000")), id).toHaveLength(made.length - i);
    }
  });

  test("5.1 what a person says comes back as it was said", async () => {
    const g = await start(() => "Hi.");
    const said = texts.filter((text) => text !== "" && text.length < 1000);
    await say(g, said.join("\u0001"));
    const { messages } = (await g.ask("GET", "/agents/helper/sessions/s/branches/main/state")).body;
    expect(messages[0].content[0].text.split("\u0001")).toEqual(said);
  });

  test("6.5 a provider's error says its code and status, and no key", async () => {
    const refusal = Object.assign(new Error("Incorrect API key provided: sk-CANARY0123456789"), { statusCode: 401 });
    const g = await start([{ error: refusal }]);
    const live = await g.live("/agents/helper/sessions/s/branches/main/events/live");
    await say(g, "Hello");
    const shown = await live.until((frame) => frame.type === "event" && frame.event.type === "run-end");
    const { events } = (await g.ask("GET", "/sessions/s/branches/main/events")).body;
    const error = { code: "model_failed", status: 401, message: expect.stringContaining("provided: ***") };
    expect(shown).toMatchObject({ event: { error } });
    expect(events.at(-1)).toMatchObject({ type: "turn.ended", error });
    expect(JSON.stringify([shown, events])).not.toContain("CANARY");
  });

  test("8.4 a file's name loses what would make it look like another", async () => {
    const { ask } = await start([]);
    const main = "/sessions/s/branches/main/content";
    const odd = "\u202egnp.\u200bexe\u0085\u2066\u061c\u200f\u2028\ufeff";
    const answer = await ask("POST", main, new Uint8Array([7]), { "x-filename": encodeURIComponent(odd) });
    expect(answer.body).toMatchObject({ name: "gnp.exe" });
  });

  test("8.4 a file's name is a name", async () => {
    const { ask } = await start([]);
    const main = "/sessions/s/branches/main/content";
    for (const [i, text] of texts.entries()) {
      let name: string;
      try {
        name = encodeURIComponent(text);
      } catch {
        continue;
      }
      const answer = await ask("POST", main, new Uint8Array([1, i]), { "x-filename": name });
      expect(answer.status, JSON.stringify([text, answer.body])).toBe(201);
      const got = await ask("GET", `${main}/${answer.body.id}`);
      expect(got.status).toBe(200);
      expect(got.headers.get("content-disposition")).toMatch(/^attachment; filename\*=UTF-8''[\w.%~!-]+$/);
    }
  });
}
