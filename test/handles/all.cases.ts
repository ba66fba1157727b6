// What a handle does, whatever is behind it: an agent in this process, or a server over SSE or WebSocket. The cases are
// written against `BranchHandle` and `SessionHandle` alone, so they show that code written for one runs with the other.

import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { AgentOptions } from "../../src/agent/index.ts";
import { BoughError } from "../../src/base/errors.ts";
import type { BoughEvent, Message } from "../../src/events/index.ts";
import { textOf } from "../../src/events/index.ts";
import { defineTool, keepTurns } from "../../src/index.ts";
import { partings } from "../../src/projection/index.ts";
import type { Script } from "../../src/scripted/index.ts";
import type { BranchHandle, SessionHandle } from "../../src/wire/index.ts";
import { undoTurn } from "../../src/wire/revise.ts";
import { held, until } from "../server/kit.ts";

/** A way to an agent with the script, and its session "s". */
export type Open = (
  script: Script,
  options?: Partial<AgentOptions>,
) => Promise<{
  branch(scope: string | { sessionId: string; branchId?: string }): BranchHandle;
  session(id: string): SessionHandle;
  ensureSession(id: string, options?: { metadata?: { [key: string]: string } }): Promise<{ metadata: object }>;
}>;

const texts = (messages: readonly Message[]) => messages.map((message) => textOf(message));
const code = (wanted: string) => (error: unknown) => BoughError.is(error) && (error.code as string) === wanted;

/** The types of a run's events, without those that depend on how fast they are read. */
async function typesOf(events: AsyncIterable<BoughEvent>): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of events) if (types.at(-1) !== type) types.push(type);
  return types;
}

async function drained(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

const wipe = defineTool({
  input: z.object({ path: z.string() }),
  permission: true,
  execute: ({ path }) => `${path} is gone`,
});
const script: Script = (prompt) =>
  prompt.at(-1)?.role === "tool" ? "Done." : { calls: [{ name: "wipe", input: { path: "/tmp/x" } }] };
const asking = { script, options: { tools: { wipe } } };

export function describeHandles(name: string, open: Open): void {
  describe(name, () => {
    runCases(open);
    questionCases(open);
    historyCases(open);
    otherCases(open);
  });
}

function runCases(open: Open): void {
  test("a run gives its events, its result and its text", async () => {
    const { branch } = await open(["Hello there."]);
    const run = branch("s").run("Hi", { metadata: { from: "test" } });
    const types = await typesOf(run);
    expect(types).toEqual(expect.arrayContaining(["turn.started", "message.added", "run-start", "text-delta"]));
    expect(types.slice(-2)).toEqual(["turn.committed", "run-end"]);
    const result = await run.result;
    expect(result).toMatchObject({ status: "completed", text: "Hello there.", sessionId: "s", branchId: "main" });
    expect(result.iterations).toBe(1);
    expect(texts(result.messages)).toEqual(["Hi", "Hello there."]);
    expect(await run.text()).toBe("Hello there.");
  });

  test("textStream gives the answer as it is written", async () => {
    const { branch } = await open(["One two three."]);
    let text = "";
    for await (const piece of branch("s").run("Count").textStream) text += piece;
    expect(text).toBe("One two three.");
  });

  test("structured output is the result's output, native and by tool", async () => {
    const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    const { branch } = await open(['{"n":1}', { calls: [{ name: "return_output", input: { n: 2 } }] }]);
    const native = await branch("s").run("One", { output: { schema } }).result;
    expect(native).toMatchObject({ status: "completed", output: { n: 1 } });
    const called = await branch("s").run("Two", { output: { schema, mode: "tool" } }).result;
    expect(called).toMatchObject({ status: "completed", output: { n: 2 } });
  });

  test("a failed run ends with its error, and text() rejects with it", async () => {
    const { branch } = await open([{ error: new Error("The provider is down.") }], { retry: { attempts: 1 } });
    const run = branch("s").run("Hi");
    const result = await run.result;
    expect(result.status).toBe("failed");
    expect(result.status === "failed" && result.error.message).toMatch(/provider is down/);
    await expect(run.text()).rejects.toThrow(/provider is down/);
  });

  test("a run that can't begin rejects: no such session, branch taken", async () => {
    const model = held();
    const { branch } = await open(model.script);
    await expect(branch("nowhere").run("Hi").result).rejects.toSatisfy(code("session_not_found"));
    await branch("s").submit("Hi");
    await expect(branch("s").run("Me too").text()).rejects.toSatisfy(code("run_active"));
    await expect(branch("s").submit("Me too")).rejects.toSatisfy(code("run_active"));
    await branch("s").interrupt();
  });

  test("submit returns when the input is durable, and the run goes on by itself", async () => {
    const model = held();
    const { branch } = await open(model.script);
    const { runId, inputId } = await branch("s").submit("Hi");
    const state = await branch("s").state();
    expect(state.activeRun).toMatchObject({ runId, status: "active" });
    expect(state.openTurn?.messages.map(({ id }) => id)).toEqual([inputId]);
    expect(await branch("s").interrupt({ runId, reason: "enough" })).toEqual({ status: "accepted", runId });
    expect((await branch("s").state()).activeRun).toBeNull();
  });

  test("a run is interrupted by its handle and by its signal", async () => {
    const model = held();
    const { branch } = await open(model.script);
    const run = branch("s").run("Hi");
    for await (const { type } of run) if (type === "run-start") break;
    await run.interrupt("enough");
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "enough" });
    const calling = new AbortController();
    const second = branch("s").run("Again", { signal: calling.signal });
    for await (const { type } of second) if (type === "run-start") break;
    calling.abort();
    expect(await second.result).toMatchObject({ status: "interrupted" });
  });
}

function questionCases(open: Open): void {
  test("a question is waited for, typed by its kind, and answered by its interaction", async () => {
    const { branch } = await open(asking.script, asking.options);
    const handle = branch("s");
    const run = handle.run("Wipe it");
    for await (const event of run) {
      if (event.type !== "interaction.opened" || event.kind !== "permission") continue;
      expect(event.request.toolName).toBe("wipe");
      const [interaction] = await handle.interactions();
      expect(interaction).toMatchObject({ id: event.id, kind: "permission" });
      if (interaction?.kind === "permission") await handle.respond(interaction, { approved: true });
    }
    expect(await run.result).toMatchObject({ status: "completed", text: "Done." });
  });

  test("a parked run ends with its questions, and the answer resumes the turn", async () => {
    const { branch, session } = await open(asking.script, asking.options);
    const handle = branch("s");
    const result = await handle.run("Wipe it", { questions: "park" }).result;
    expect(result.status).toBe("parked");
    const [question] = result.status === "parked" ? result.interactions : [];
    expect((await session("s").interactions()).map(({ id }) => id)).toEqual([question!.id]);
    const { runId } = await handle.respond(question!.id, { approved: false, reason: "Not now." });
    expect(runId).toBeTypeOf("string");
    await until(async () => (await handle.state()).openTurn === undefined);
    expect(texts((await handle.messages()).messages).at(-1)).toBe("Done.");
    await expect(handle.respond(question!.id, { approved: true })).rejects.toSatisfy(code("interaction_closed"));
  });
}

/** A branch with two turns. */
async function twoTurns(
  open: Open,
  script: Script = ["One.", "Two.", "Three.", "Four."],
  options?: Partial<AgentOptions>,
) {
  const opened = await open(script, options);
  const handle = opened.branch("s");
  for (const input of ["First", "Second"]) await handle.run(input).text();
  return { ...opened, handle };
}

function historyCases(open: Open): void {
  test("edit runs another input in place of a message, on a fork", async () => {
    const { handle } = await twoTurns(open);
    const { messages } = await handle.messages();
    const { branch, run } = await handle.edit(messages[2]!.id, "Other");
    expect(await run.text()).toBe("Three.");
    expect(texts((await branch.messages()).messages)).toEqual(["First", "One.", "Other", "Three."]);
    expect(texts((await handle.messages()).messages)).toEqual(["First", "One.", "Second", "Two."]);
    expect((await branch.get()).forkedFrom).toBe("main");
    const first = await handle.edit(messages[0]!.id, "Anew");
    expect(await first.run.text()).toBe("Four.");
    expect(texts((await first.branch.messages()).messages)).toEqual(["Anew", "Four."]);
    await expect(handle.edit(messages[1]!.id, "Other")).rejects.toSatisfy(code("invalid_argument"));
    await expect(handle.edit("nobody", "Other")).rejects.toSatisfy(code("message_not_on_branch"));
  });

  test("regenerate runs a turn's input again, on a fork", async () => {
    const { handle } = await twoTurns(open);
    const last = await handle.regenerate();
    expect(await last.run.text()).toBe("Three.");
    expect(texts((await last.branch.messages()).messages)).toEqual(["First", "One.", "Second", "Three."]);
    const { messages } = await handle.messages();
    const first = await handle.regenerate(messages[1]!.id);
    expect(await first.run.text()).toBe("Four.");
    const again = await first.branch.messages();
    expect(texts(again.messages)).toEqual(["First", "Four."]);
    expect(again.messages[0]!.id).toBe(messages[0]!.id);
  });

  test("answers that are regenerated, also from each other, are versions of one message on every branch", async () => {
    const { session, handle } = await twoTurns(open);
    const x = await handle.regenerate();
    expect(await x.run.text()).toBe("Three.");
    const y = await x.branch.regenerate();
    expect(await y.run.text()).toBe("Four.");
    expect(texts((await y.branch.messages()).messages)).toEqual(["First", "One.", "Second", "Four."]);
    const branches = await session("s").branches();
    const [parting] = partings(branches, "main");
    expect(parting).toMatchObject({ index: 3, current: 0, versions: { length: 3 } });
    for (const [current, { branch }] of [x, y].entries()) {
      expect(partings(branches, branch.scope.branchId)).toEqual([{ ...parting, current: current + 1 }]);
    }
    const shown = await x.branch.get();
    expect(shown).toMatchObject({ firstWords: "Three.", firstMessageId: (await x.run.result).messages.at(-1)!.id });
  });

  test("redo brings back what was undone, on a branch that parts where it was undone", async () => {
    const { session, handle } = await twoTurns(open);
    await expect(handle.redo()).rejects.toSatisfy(code("invalid_argument"));
    const { seq } = await handle.undo();
    expect(await handle.run("Other").text()).toBe("Three.");
    const back = await handle.redo({ newBranchId: "back", name: "As it was" });
    expect(texts((await back.messages()).messages)).toEqual(["First", "One.", "Second", "Two."]);
    expect(texts((await handle.messages()).messages)).toEqual(["First", "One.", "Other", "Three."]);
    expect(await back.get()).toMatchObject({ id: "back", name: "As it was", forkedAtSeq: seq });
    const branches = await session("s").branches();
    expect(partings(branches, "back")).toMatchObject([{ index: 2, current: 1, versions: { length: 2 } }]);
    expect(partings(branches, "main")).toMatchObject([{ index: 2, current: 0 }]);
  });

  test("undo reverts the last turn, and then the one before", async () => {
    const { handle } = await twoTurns(open);
    expect(texts((await handle.undo()).messages)).toEqual(["Second", "Two."]);
    expect(texts((await handle.messages()).messages)).toEqual(["First", "One."]);
    await handle.undo();
    expect((await handle.messages()).messages).toEqual([]);
    await expect(handle.undo()).rejects.toSatisfy(code("invalid_argument"));
    expect(await handle.run("Again").text()).toBe("Three.");
  });

  /** The handle, on which something happens once, right after its messages were read. */
  const interrupted = (handle: BranchHandle, meanwhile: () => Promise<unknown>): BranchHandle => {
    let happened = false;
    const messages: BranchHandle["messages"] = async (query) => {
      const page = await handle.messages(query);
      if (!happened) await meanwhile();
      happened = true;
      return page;
    };
    return {
      ...{ scope: handle.scope, messages },
      ...{ state: (query?: { last?: number }) => handle.state(query), revert: (point) => handle.revert(point) },
    } as BranchHandle;
  };

  test("undo reverts no turn that another writer adds meanwhile", async () => {
    const { handle } = await twoTurns(open);
    const undone = undoTurn(interrupted(handle, () => handle.run("Third").text()));
    await expect(undone).rejects.toSatisfy(code("sequence_conflict"));
    expect(texts((await handle.messages()).messages)).toEqual(["First", "One.", "Second", "Two.", "Third", "Three."]);
  });

  test("undo is not stopped by what doesn't concern the conversation", async () => {
    const { handle } = await twoTurns(open);
    const undone = undoTurn(interrupted(handle, () => handle.update({ name: "Renamed" })));
    expect(texts((await undone).messages)).toEqual(["Second", "Two."]);
    expect(texts((await handle.messages()).messages)).toEqual(["First", "One."]);
  });

  test("compactions, pins and compacted forks", async () => {
    const { handle } = await twoTurns(open, undefined, { compaction: { strategy: keepTurns(10) } });
    const { messages } = await handle.messages();
    const ids = messages.map(({ id }) => id);
    await handle.pin(ids[1]!);
    expect(await handle.pins()).toEqual([ids[1]]);
    const made = await handle.compact({ keep: { turns: 1 }, retention: "hard" });
    expect(made).toMatchObject({ retention: "hard", first: ids[0], last: ids[1], messages: 2, kept: 1, inForce: true });
    expect((await handle.messages()).messages.map(({ id }) => id)).toEqual(ids.slice(1));
    expect(await handle.compactions()).toEqual([made]);
    const whole = await handle.fork({ compaction: "none" });
    expect((await whole.messages()).messages.map(({ id }) => id)).toEqual(ids);
    const small = await handle.fork({ compaction: { range: { from: ids[2]!, to: ids[3]! } } });
    expect((await small.messages()).messages.map(({ id }) => id)).toEqual([ids[1]]);
    await expect(handle.compact({ keep: { turns: 1 } })).rejects.toSatisfy(code("nothing_to_compact"));
    expect(await handle.uncompact(made.id)).toEqual({ ...made, inForce: false });
    await expect(handle.uncompact()).rejects.toSatisfy(code("compaction_not_found"));
    await handle.unpin(ids[1]!);
    expect(await handle.pins()).toEqual([]);
    expect((await handle.messages()).messages.map(({ id }) => id)).toEqual(ids);
    expect(await handle.run("Third").text()).toBe("Three.");
  });

  test("prompts, their differences, and a compaction that is checked", async () => {
    const { handle } = await twoTurns(open, undefined, { compaction: { strategy: keepTurns(10) } });
    const [, one, , two] = (await handle.messages()).messages.map(({ id }) => id);
    const prompt = await handle.promptOf(two!);
    expect(prompt).toMatchObject({ messageId: two, isVerified: true, missing: [], withheld: [] });
    expect(prompt.messages.map(textOf)).toEqual(["First", "One.", "Second"]);
    expect(await handle.diffPrompts(one!, two!)).toMatchObject({ isPrefix: true, share: 1, isVerified: true });
    const fork = await handle.fork({ newBranchId: "f" });
    expect(await fork.promptOf(two!)).toEqual({ ...prompt, branchId: "f" });
    expect(await fork.diffPrompts(one!, two!)).toEqual(await handle.diffPrompts(one!, two!));
    await expect(handle.promptOf("nothing")).rejects.toSatisfy(code("message_not_on_branch"));
    await expect(handle.checkCompaction()).rejects.toSatisfy(code("compaction_not_found"));
    const { id } = await handle.compact({ keep: { turns: 1 } });
    const check = await handle.checkCompaction({ questions: ["What came first?"] });
    expect(check).toMatchObject({ compactionId: id, answers: [{ question: "What came first?" }] });
    expect(await handle.promptOf(two!)).toEqual(prompt);
  });

  test("fork, revert, siblings, pages and checkpoints", async () => {
    const { handle } = await twoTurns(open);
    const { checkpoints } = handle;
    await checkpoints.save({ checkpointId: "c", label: "two" });
    const page = await handle.messages({ last: 1 });
    expect(texts(page.messages)).toEqual(["Two."]);
    const earlier = await handle.messages({ last: 2, before: page.before! });
    expect(texts(earlier.messages)).toEqual(["One.", "Second"]);
    expect((await handle.state({ last: 1 })).before).toBe(page.messages[0]!.id);
    const fork = await handle.fork({ from: earlier.messages[0]!.id, newBranchId: "f", name: "Formal" });
    expect(await fork.get()).toMatchObject({ id: "f", name: "Formal", messageCount: 2 });
    expect((await fork.siblings()).map(({ id }) => id)).toEqual(["main", "f"]);
    expect(await fork.update({ name: null, tags: ["x"] })).toMatchObject({ tags: ["x"] });
    expect(await handle.revert({ to: earlier.messages[0]!.id })).toMatchObject({ messageCount: 2 });
    await expect(handle.revert({})).rejects.toSatisfy(code("invalid_argument"));
    expect(await checkpoints.list()).toMatchObject([{ id: "c", label: "two" }]);
    expect(texts((await checkpoints.load("c")).messages)).toEqual(["First", "One.", "Second", "Two."]);
    expect((await (await checkpoints.fork("c")).get()).messageCount).toBe(4);
    await expect(checkpoints.load("d")).rejects.toSatisfy(code("checkpoint_not_found"));
    await fork.delete();
    await expect(fork.get()).rejects.toSatisfy(code("branch_not_found"));
  });
}

function otherCases(open: Open): void {
  test("watch tells the log from a cursor, and then facts and live events in order", async () => {
    const { branch } = await open(["One.", "Two."]);
    const handle = branch("s");
    await handle.run("First").text();
    const { seq } = await handle.state();
    const leaving = new AbortController();
    onTestFinished(() => leaving.abort());
    const seen: BoughEvent[] = [];
    const watching = (async () => {
      for await (const event of handle.watch({ after: 1, signal: leaving.signal })) {
        seen.push(event);
        if (event.type === "run-end") return;
      }
    })();
    await until(() => seen.some((event) => event.seq === seq));
    await handle.run("Second").text();
    await watching;
    const kept = seen.flatMap((event) => (event.seq === undefined ? [] : [event.seq]));
    expect(kept).toEqual(kept.map((_, i) => i + 2));
    const types = seen.slice(seen.findIndex((event) => event.seq === seq) + 1).map(({ type }) => type);
    expect(types.indexOf("text-delta")).toBeGreaterThan(types.indexOf("turn.started"));
    expect(types.indexOf("text-delta")).toBeLessThan(types.lastIndexOf("message.added"));
    const facts = await handle.events({ after: 1 });
    expect(facts.map((fact) => fact.seq)).toEqual(kept);
    expect((await handle.events({ type: "turn.committed" })).length).toBe(2);
  });

  test("content is stored, listed, read and removed", async () => {
    const { branch } = await open(["Seen."]);
    const { content } = branch("s");
    const bytes = new Uint8Array([1, 2, 3, 0, 255]);
    const put = await content.put(bytes, { name: "ä.bin" });
    expect(put).toMatchObject({ name: "ä.bin", size: 5 });
    expect((await content.list()).map(({ id }) => id)).toEqual([put.id]);
    expect(new Uint8Array(await (await content.get(put.id)).arrayBuffer())).toEqual(bytes);
    await content.delete(put.id);
    await expect(content.delete(put.id)).rejects.toSatisfy(code("content_not_found"));
  });

  test("an upload tells its progress, in every form that bytes have", async () => {
    const { branch } = await open([]);
    const { content } = branch("s");
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
    }
    const forms = { bytes, blob: new Blob([bytes]), stream: new Blob([bytes]).stream(), iterable: pieces() };
    for (const [form, given] of Object.entries(forms)) {
      const told: number[] = [];
      const put = await content.put(given, { name: `${form}.bin`, onProgress: (sent) => void told.push(sent) });
      expect([form, put.size, told.at(-1)]).toEqual([form, bytes.length, bytes.length]);
      expect(told.length).toBeGreaterThan(form === "iterable" ? 1 : 0);
      expect(told).toEqual([...told].sort((a, b) => a - b));
    }
    const [only, ...others] = await content.list();
    expect(others).toEqual([]);
    expect(new Uint8Array(await (await content.get(only!.id)).arrayBuffer())).toEqual(bytes);
  });

  test("an upload that is called off has the caller's reason, lets go of its source and leaves nothing", async () => {
    const { branch } = await open([]);
    const { content } = branch("s");
    const over = new AbortController();
    let isLeft = false;
    async function* endless() {
      try {
        for (;;) yield new Uint8Array(1000);
      } finally {
        isLeft = true;
      }
    }
    const onProgress = (sent: number) => sent >= 50_000 && over.abort(new Error("enough"));
    await expect(content.put(endless(), { signal: over.signal, onProgress })).rejects.toThrow("enough");
    await until(async () => isLeft);
    await expect(content.put(new Uint8Array(3), { signal: over.signal })).rejects.toThrow("enough");
    expect(await content.list()).toEqual([]);
  });

  test("bytes that can't be read are their owner's error", async () => {
    const { branch } = await open([]);
    async function* broken() {
      yield new Uint8Array(1000);
      throw new Error("The disk is gone.");
    }
    await expect(branch("s").content.put(broken())).rejects.toThrow("The disk is gone.");
    const wrong = (async function* () {
      yield "text" as unknown as Uint8Array;
    })();
    await expect(branch("s").content.put(wrong)).rejects.toThrow("A stream must yield Uint8Arrays.");
    expect(await branch("s").content.list()).toEqual([]);
  });

  test("content is read as a stream, and in parts", async () => {
    const { branch } = await open([]);
    const { content } = branch("s");
    const bytes = Uint8Array.from({ length: 200_000 }, (_, i) => i % 251);
    const { id, mediaType } = await content.put(bytes);
    expect(mediaType).toBe("application/octet-stream");
    const read = async (options: Parameters<typeof content.stream>[1]) =>
      new Uint8Array(await new Response(await content.stream(id, options)).arrayBuffer());
    expect(await read({})).toEqual(bytes);
    expect(await read({ from: 7 })).toEqual(bytes.subarray(7));
    expect(await read({ from: 7, to: 150_000 })).toEqual(bytes.subarray(7, 150_000));
    expect(await read({ from: 199_999, to: 900_000 })).toEqual(bytes.subarray(199_999));
    expect(await read({ from: 200_000 })).toEqual(new Uint8Array(0));
    expect((await content.get(id, { to: 3 })).size).toBe(3);
    await expect(content.stream(id, { from: 5, to: 5 })).rejects.toSatisfy(code("invalid_argument"));
    await expect(content.get(id, { from: -1 })).rejects.toSatisfy(code("invalid_argument"));
    await expect(content.stream("0".repeat(64))).rejects.toSatisfy(code("content_not_found"));
    const over = new AbortController();
    const left = (await content.stream(id, { signal: over.signal })).getReader();
    await left.read();
    over.abort(new Error("enough"));
    await expect(drained(left)).rejects.toThrow("enough");
  });

  test("the type of a file is told by its bytes", async () => {
    const { branch } = await open([]);
    const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0]);
    async function* bytewise() {
      for (const byte of png) yield new Uint8Array([byte]);
    }
    expect(await branch("s").content.put(bytewise(), { name: "a.txt" })).toMatchObject({ mediaType: "image/png" });
    expect((await branch("s").content.get((await branch("s").content.list())[0]!.id)).type).toBe("image/png");
  });

  test("a session: made once, changed, its branches and permissions, deleted", async () => {
    const { session, ensureSession, branch } = await open(["One."]);
    await ensureSession("t", { metadata: { owner: "ada" } });
    expect(await ensureSession("t", { metadata: { owner: "bob" } })).toMatchObject({ metadata: { owner: "ada" } });
    const handle = session("t");
    expect(await handle.update({ metadata: { n: 1 } })).toMatchObject({ metadata: { owner: "ada", n: 1 } });
    const free = await handle.createBranch({ branchId: "free", description: "on its own" });
    expect(await free.run("Hi").text()).toBe("One.");
    expect((await handle.branches()).map(({ id, messageCount }) => [id, messageCount])).toEqual([
      ["main", 0],
      ["free", 2],
    ]);
    expect(handle.branch().scope).toMatchObject({ sessionId: "t", branchId: "main" });
    expect(await handle.permissions()).toEqual([]);
    expect(await handle.revokePermission({ tool: "wipe" })).toBe(0);
    await handle.delete();
    await expect(handle.get()).rejects.toSatisfy(code("session_not_found"));
    await expect(branch("t").get()).rejects.toSatisfy(code("session_not_found"));
  });

  test("a scope without a branch means main, also when there are others", async () => {
    const { handle } = await twoTurns(open);
    await handle.fork({ newBranchId: "f" });
    expect(await handle.run("Third").text()).toBe("Three.");
    expect(handle.scope).toMatchObject({ sessionId: "s", branchId: "main" });
  });
}
