import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "../base/errors.ts";
import { codec, type Draft, type FactPayload, type FactType, isUnknown, typeName } from "./codec.ts";
import { keptEvents } from "./kept.ts";

/** Every kind of fact with every field it can have. */
const samples: { [T in FactType]: FactPayload<T> } = {
  "branch.created": {
    name: "n",
    description: "d",
    tags: ["a", "b"],
    metadata: { deep: { er: [1, null, "x"] } },
    owner: { sessionId: "s", branchId: "main", turnId: "t", callId: "c1", kind: "subagent" },
    visibility: "hidden",
  },
  "branch.forked": {
    from: { branchId: "main", seq: 7 },
    messageId: "m1",
    messages: 3,
    answered: ["c1"],
    set: { plan: null, step: 2 },
    name: "fork",
    description: "",
    tags: [],
    metadata: {},
    owner: { sessionId: "s", branchId: "main", turnId: "t", kind: "anything" },
    visibility: "hidden",
  },
  "branch.updated": { name: null, description: "d", tags: null, metadata: { a: 1 } },
  "branch.reverted": {
    to: 4,
    messages: 2,
    messageId: "m2",
    answered: [],
    checkpointId: "c",
    set: { a: null },
  },
  "turn.started": { runId: "r", agentId: "a", metadata: { from: "test" }, inputs: ["i"] },
  "turn.resumed": { turnId: "t", runId: "r2", agentId: "a" },
  "turn.parked": { turnId: "t", runId: "r2", reason: "asleep", asleep: true, until: 5 },
  "step.started": { turnId: "t", key: "cool-off", kind: "sleep", until: 1_796_860_800_000, tries: 2 },
  "step.returned": {
    turnId: "t",
    key: "price[sku-9]/fetch",
    kind: "agent",
    output: { deep: [1, null] },
    contentId: "c0ffee",
    error: { message: "no", code: "run_failed" },
    tries: 3,
    ms: 812.5,
    input: "abc",
    child: { sessionId: "s", branchId: "b", turnId: "u", seq: 4, status: "completed" },
    usage: { inputTokens: 1 },
    signalId: "s1",
  },
  "step.skipped": { turnId: "t", key: "tech", why: "condition" },
  "signal.received": { name: "payment", payload: { amount: 3 }, by: "shop" },
  "message.added": {
    turnId: "t",
    role: "assistant",
    content: [
      { type: "text", text: "two \u{1f600} \ud800 lines\n" },
      { type: "tool-call", toolCallId: "c1", toolName: "add", input: { a: 1 }, providerOptions: { p: { q: 1 } } },
      { type: "tool-call", toolCallId: "c2", toolName: "search", input: null, providerExecuted: true },
      { type: "reasoning", text: "because" },
      { type: "file", mediaType: "image/png", data: "bough-content://sha256/00" },
      { type: "vendor:thing", anything: [true] },
    ],
    partial: true,
    source: "steer",
    inputId: "i",
    providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } },
  },
  "tool.returned": {
    turnId: "t",
    callId: "c1",
    toolName: "add",
    output: { type: "json", value: { sum: 3 } },
    providerOptions: { p: {} },
  },
  "permission.granted": {
    turnId: "t",
    callId: "c1",
    toolName: "wipe",
    how: "always",
    modeOf: "run",
    by: "ada",
    interactionId: "i",
  },
  "tool.started": { turnId: "t", callIds: ["c1", "c2"] },
  "task.started": {
    ...{ turnId: "t", name: "index", callId: "c1", runId: "r", owner: "host/1", notify: "all" },
    child: { sessionId: "s", branchId: "sub", turnId: "u" },
  },
  "task.ended": {
    ...{ taskId: "k", status: "failed", output: [1], error: { message: "m", more: true }, reason: "gone" },
    child: { sessionId: "s", branchId: "sub", turnId: "u", seq: 4, status: "failed" },
    usage: { inputTokens: 1, other: 2 },
  },
  "turn.handed": { turnId: "t", callId: "c1", from: "router", to: "billing", path: ["billing"] },
  "content.attached": {
    ...{ turnId: "t", messageId: "m", callId: "c1", contentId: "c0ffee", name: "tree.png", mediaType: "image/png" },
    ...{ size: 1, kind: "artifact", meta: { voice: "alloy" } },
  },
  "state.changed": { turnId: "t", set: { plan: { steps: ["one"] }, gone: null } },
  "turn.staged": { turnId: "t", usage: { inputTokens: 1, outputTokens: 2, other: 3 }, iterations: 2, reason: "stop" },
  "turn.committed": { turnId: "t", usage: { totalTokens: 3 }, iterations: 1, reason: "stop" },
  "turn.discarded": { turnId: "t", reason: "never saved" },
  "turn.ended": { turnId: "t", status: "failed", error: { message: "m", code: "c", extra: [1] }, iterations: 0 },
  "interaction.opened": {
    turnId: "t",
    kind: "permission",
    callId: "c1",
    key: "k",
    request: { tool: "rm" },
    expiresAt: 9,
  },
  "interaction.answered": { interactionId: "i", answer: { allow: true }, by: "ada" },
  "interaction.expired": { interactionId: "i", reason: "no answer" },
  "input.queued": {
    messages: [{ role: "user", content: [{ type: "text", text: "later" }], providerOptions: { p: {} } }],
    when: "steer",
    source: { kind: "task", taskId: "k" },
    agentId: "a",
    by: "ada",
    metadata: { a: 1 },
    request: { config: { temperature: 0 }, identity: { tenant: "t" } },
  },
  "input.edited": { inputId: "i", messages: [{ role: "system", content: "x" }], when: "idle", by: "ada" },
  "input.withdrawn": { inputId: "i", by: "ada", reason: "not needed" },
  "interrupt.requested": { runId: "r", reason: "enough" },
  "history.compacted": {
    retention: "hard",
    from: 0,
    to: 4,
    first: "m1",
    last: "m4",
    keep: [2],
    replacements: [{ id: "s1", role: "system", content: "So far: nothing." }],
    over: [3],
    reason: "share",
    strategy: "summary",
    model: "m",
    tokens: { before: 900, after: 80 },
  },
  "history.cleared": { results: [{ at: 3, callIds: ["c1"] }], reason: "share", tokens: { before: 900, after: 80 } },
  "history.restored": {
    of: "h1",
    overlays: [
      "h0",
      {
        id: "h2",
        seq: 7,
        createdAt: 5,
        retention: "soft",
        from: 0,
        to: 2,
        first: "m1",
        last: "m2",
        keep: [],
        replacements: [{ id: "s2", role: "user", content: "Before." }],
      },
    ],
    cleared: [{ id: "h3", seq: 8, at: 3, callIds: ["c1"] }],
  },
};

const types = Object.keys(samples) as FactType[];
const at = 1_700_000_000_000;

function draftOf<T extends FactType>(type: T, changes: Record<string, unknown> = {}): Draft {
  return { type, id: "e1", at, ...samples[type], ...changes } as unknown as Draft;
}

function refusal(work: () => unknown): BoughError {
  try {
    work();
  } catch (error) {
    if (BoughError.is(error)) return error;
    throw error;
  }
  return expect.fail("it was accepted");
}

describe("a kept event", () => {
  test("is sampled here, each kind once", () => {
    expect(types.toSorted()).toEqual(keptEvents.map(({ type }) => type).toSorted());
  });

  test.each(types)("%s comes back as it was written, with its number and id", (type) => {
    const stored = codec.encode(draftOf(type));
    expect(codec.decode({ ...stored, seq: 42 })).toEqual({ ...draftOf(type), seq: 42 });
  });

  test.each(types)("%s is written the same way again after it was read", (type) => {
    const stored = codec.encode(draftOf(type));
    const { seq: _, ...again } = codec.decode({ ...stored, seq: 1 });
    expect(codec.encode(again as Draft)).toEqual(stored);
  });

  test.each(types)("%s is, as it was handed over, what its text says", (type) => {
    const { fact, ...stored } = codec.encode(draftOf(type));
    expect({ ...fact, seq: 42 }).toStrictEqual(codec.decode({ ...stored, seq: 42 }));
  });

  test("whatever is in it, it is what its text says", () => {
    const json = fc.jsonValue({ maxDepth: 5 }).filter((value) => !JSON.stringify(value).includes("__proto__"));
    fc.assert(
      fc.property(json, fc.boolean(), (value, isBare) => {
        const output = { type: "json", value, zero: -0, nothing: undefined };
        const draft = draftOf("tool.returned", {
          output: isBare ? Object.assign(Object.create(null), output) : output,
        });
        const { fact, ...stored } = codec.encode(draft);
        expect({ ...fact, seq: 1 }).toStrictEqual(codec.decode({ ...stored, seq: 1 }));
      }),
    );
  });

  test("is its own: what is done to the draft afterwards is not done to it", () => {
    const content = [{ type: "text", text: "before" }];
    const draft = draftOf("message.added", { role: "user", content });
    const { fact } = codec.encode(draft);
    content[0]!.text = "after";
    expect(fact).toMatchObject({ content: [{ text: "before" }] });
  });

  test.each(types)("%s has no routing in its text", (type) => {
    const routed = draftOf(type) as unknown as Record<string, unknown>;
    const text = JSON.parse(codec.encode(routed as unknown as Draft).data);
    const routing = ["sessionId", "branchId", "channel", "direction", "kept", "seq", "id", "agent", "metadataChain"];
    const trace = ["traceId", "spanId", "parentSpanId", "version", "depth", "chain"];
    expect(Object.keys(text).filter((key) => [...routing, ...trace].includes(key))).toEqual([]);
    expect(Object.keys(text).slice(0, 2)).toEqual(["type", "at"]);
  });

  test.each(types)("%s with a field it does not have is refused", (type) => {
    for (const key of ["sessionId", "branchId", "channel", "direction", "traceId", "spanId", "v", "seq", "surprise"]) {
      const error = refusal(() => codec.encode(draftOf(type, { [key]: "x" })));
      expect(error.code).toBe("event_invalid");
      expect(error.data).toEqual({ type, path: key });
    }
  });

  test("that is not defined is event_unknown", () => {
    const error = refusal(() => codec.encode({ type: "turn.exploded", id: "e", at } as unknown as Draft));
    expect(error.code).toBe("event_unknown");
    expect(error.data).toEqual({ type: "turn.exploded" });
    expect(refusal(() => codec.encode({ type: "text-delta", id: "e", at } as unknown as Draft)).code).toBe(
      "event_unknown",
    );
    expect(refusal(() => codec.encode({ type: "toString", id: "e", at } as unknown as Draft)).code).toBe(
      "event_unknown",
    );
  });
});

describe("a refusal names where the payload is wrong", () => {
  const cases: [FactType, Record<string, unknown>, string][] = [
    ["message.added", { role: "robot" }, "role"],
    ["message.added", { turnId: "" }, "turnId"],
    ["message.added", { turnId: undefined }, "turnId"],
    ["message.added", { partial: false }, "partial"],
    ["message.added", { content: 5 }, "content"],
    ["message.added", { content: [{ type: "text" }] }, "content.0.text"],
    [
      "message.added",
      {
        content: [
          { type: "text", text: "" },
          { type: "text", text: 5 },
        ],
      },
      "content.1.text",
    ],
    ["message.added", { content: [{ type: "tool-call", toolCallId: "", toolName: "a" }] }, "content.0.toolCallId"],
    ["message.added", { content: [{ type: "text", text: "", extra: 1 }] }, "content.0.extra"],
    ["message.added", { content: [{ text: "no type" }] }, "content.0.type"],
    ["tool.returned", { output: { value: 1 } }, "output.type"],
    ["tool.returned", { output: "text" }, "output"],
    ["branch.forked", { from: { branchId: "main", seq: -1 } }, "from.seq"],
    ["branch.forked", { from: { branchId: "main", seq: 1.5 } }, "from.seq"],
    ["branch.created", { tags: ["a", 1] }, "tags.1"],
    ["branch.created", { metadata: [] }, "metadata"],
    ["branch.created", { visibility: "shown" }, "visibility"],
    ["branch.created", { owner: { sessionId: "s", branchId: "b", turnId: "t", kind: "" } }, "owner.kind"],
    ["branch.forked", { owner: { sessionId: "s", branchId: "b", kind: "k" } }, "owner.turnId"],
    ["branch.forked", { owner: { sessionId: "s", branchId: "b", turnId: "t", kind: "k", runId: "r" } }, "owner.runId"],
    ["state.changed", { set: ["a"] }, "set"],
    ["turn.ended", { status: "committed" }, "status"],
    ["turn.ended", { error: { code: "x" } }, "error.message"],
    ["turn.committed", { usage: { inputTokens: -1 } }, "usage.inputTokens"],
    ["interaction.opened", { kind: "riddle" }, "kind"],
    ["history.compacted", { from: -1 }, "from"],
    ["history.compacted", { to: 1.5 }, "to"],
    ["history.cleared", { results: [{ at: 1, callIds: [""] }] }, "results.0.callIds.0"],
    ["history.restored", { cleared: [{ id: "h", seq: 1, at: -1, callIds: [] }] }, "cleared.0.at"],
    ["history.compacted", { replacements: [{ id: "", role: "system", content: "" }] }, "replacements.0.id"],
    ["history.compacted", { replacements: [{ id: "a", role: "tool", content: [] }] }, "replacements.0.role"],
  ];

  test.each(cases)("%s %j is refused at %s", (type, changes, path) => {
    const error = refusal(() => codec.encode(draftOf(type, changes)));
    expect(error.code).toBe("event_invalid");
    expect(error.data).toEqual({ type, path });
    expect(error.message).toContain(type);
    expect(error.message).toContain(path);
  });

  test("a time that is none is refused", () => {
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, "now", undefined, null]) {
      expect(() => codec.encode({ ...draftOf("turn.started"), at: wrong } as unknown as Draft)).toThrow(BoughError);
    }
  });
});

describe("what JSON can't carry is refused although the schema takes it", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const values: [string, unknown, string][] = [
    ["a cycle", cyclic, "limit_exceeded"],
    ["a function", { f: () => 1 }, "invalid_argument"],
    ["toJSON", { toJSON: () => "other" }, "invalid_argument"],
    ["a date", { d: new Date(0) }, "invalid_argument"],
    ["a map", { m: new Map() }, "invalid_argument"],
    ["bytes", { b: new Uint8Array(2) }, "invalid_argument"],
    ["a class instance", { e: new Error("x") }, "invalid_argument"],
    ["NaN", { n: Number.NaN }, "invalid_argument"],
    ["infinity", { n: Number.NEGATIVE_INFINITY }, "invalid_argument"],
    ["a bigint", { n: 1n }, "invalid_argument"],
    ["a symbol", { s: Symbol("s") }, "invalid_argument"],
    ["undefined in an array", { list: [1, undefined] }, "invalid_argument"],
    ["a hole in an array", { list: new Array(2) }, "invalid_argument"],
    ["__proto__", JSON.parse('{"__proto__":{"polluted":true}}'), "invalid_argument"],
  ];

  test.each(values)("%s", (_name, value, code) => {
    expect(refusal(() => codec.encode(draftOf("state.changed", { set: { value } }))).code).toBe(code);
    const output = { type: "json", value };
    expect(refusal(() => codec.encode(draftOf("tool.returned", { output }))).code).toBe(code);
  });

  test("an error object as the error of a turn", () => {
    const error = new Error("boom");
    expect(refusal(() => codec.encode(draftOf("turn.ended", { error }))).code).toBe("invalid_argument");
  });

  test("nothing of a refused prototype key stays behind", () => {
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe("limits of a fact", () => {
  const nested = (depth: number) => {
    let value: unknown = 1;
    for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { value };
    return value;
  };

  test("it may be 64 levels deep, itself included, and no deeper", () => {
    const draft = (depth: number) => draftOf("tool.returned", { output: { type: "json", value: nested(depth) } });
    expect(codec.decode({ ...codec.encode(draft(62)), seq: 1 })).toMatchObject({ output: { value: nested(62) } });
    expect(refusal(() => codec.encode(draft(63))).code).toBe("limit_exceeded");
  });

  test("however deep, the refusal is one, not a stack overflow", () => {
    const value = nested(200_000);
    const draft = draftOf("tool.returned", { output: { type: "json", value } });
    expect(refusal(() => codec.encode(draft)).code).toBe("limit_exceeded");
  });

  test("it may be 8 MiB of UTF-8 and no byte more", () => {
    const empty = codec.encode(draftOf("branch.created", { description: "" })).data.length;
    const limit = 8 * 1024 * 1024;
    const ascii = (length: number) => draftOf("branch.created", { description: "x".repeat(length) });
    expect(codec.encode(ascii(limit - empty)).data.length).toBe(limit);
    expect(refusal(() => codec.encode(ascii(limit - empty + 1))).code).toBe("limit_exceeded");
    const wide = draftOf("branch.created", { description: "\u8a9e".repeat(limit / 3) });
    expect(refusal(() => codec.encode(wide)).code).toBe("limit_exceeded");
  });
});

describe("a kind this version does not know", () => {
  const texts = [
    '{"type":"moon.rose","at":5}',
    '{"type":"moon.rose","at":5,"phase":"full","nested":{"v":[1,2,{"a":null}]}}',
    '{"type":"moon.rose","v":2,"at":5,"phase":0.5}',
    '{"type":"moon.rose","v":17,"at":5,"turnId":"t","id2":"x","seq2":3}',
    '{"type":"unknown:moon.rose","at":5,"payload":{"payload":1}}',
    '{"1":"index keys come first","10":2,"type":"moon.rose","at":5,"a":1}',
    '{"type":"moon.rose","at":5,"__proto":1,"toString":"x"}',
  ];

  test.each(texts)("is written again byte for byte: %s", (data) => {
    const fact = codec.decode({ seq: 9, id: "e9", data });
    expect(isUnknown(fact)).toBe(true);
    expect(fact).toMatchObject({ seq: 9, id: "e9", at: 5 });
    const { seq: _, ...again } = fact;
    expect(codec.encode(again as never)).toEqual({ id: "e9", data, fact: again });
  });

  test("keeps its name for whoever shows it", () => {
    const fact = codec.decode({ seq: 1, id: "e", data: texts[0]! });
    expect([fact.type, typeName(fact)]).toEqual(["unknown:moon.rose", "moon.rose"]);
  });

  test("survives whatever a newer Bough puts into it", () => {
    const key = fc.string().filter((name) => !["type", "at", "v", "__proto__"].includes(name));
    const payload = fc.dictionary(key, fc.jsonValue({ maxDepth: 5 }), { noNullPrototype: true });
    const version = fc.option(fc.integer({ min: 2, max: 99 }), { nil: undefined });
    fc.assert(
      fc.property(payload, version, (rest, v) => {
        const data = JSON.stringify({ type: "moon.rose", ...(v && { v }), at: 1, ...rest });
        fc.pre(!/"__proto__":/.test(data));
        const { seq: _, ...again } = codec.decode({ seq: 1, id: "e", data });
        expect(codec.encode(again as never).data).toBe(data);
      }),
    );
  });

  test("can't be used to write a known kind past its schema", () => {
    const smuggled = [
      { type: "unknown:turn.committed", id: "e", at, payload: {} },
      { type: "unknown:moon.rose", id: "e", at, payload: { type: "turn.committed" } },
      { type: "unknown:moon.rose", id: "e", at, payload: { at: "never" } },
    ];
    for (const draft of smuggled) expect(refusal(() => codec.encode(draft as never)).code).toBe("event_invalid");
  });
});

describe("text that is no fact", () => {
  test.each(["", "{", "null", "5", '"text"', "[]", "{}", '{"type":5,"at":1}', '{"type":"turn.started"'])(
    "%j is store_corrupt, with the place where it stands",
    (data) => {
      const error = refusal(() => codec.decode({ seq: 12, id: "e12", data }));
      expect(error.code).toBe("store_corrupt");
      expect(error.data).toMatchObject({ seq: 12, id: "e12" });
    },
  );
});
