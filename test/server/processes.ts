// Two servers in processes of their own on one store: whoever is asked, and whoever dies, a client sees one branch.

import { expect, test } from "vitest";
import { expectProblem, isEvent, scope, until } from "./kit.ts";
import { keptOf, logOf, Node, type Place, settledOn } from "./process.ts";

const main = "/sessions/s/branches/main";
const inputs = `${scope}/inputs`;
const live = `${scope}/events/live`;

async function givenTwo(place: Place): Promise<{ one: Node; two: Node }> {
  const one = await Node.start("one", place);
  const two = await Node.start("two", place);
  expect((await one.ask("POST", "/sessions", { sessionId: "s" })).status).toBe(201);
  return { one, two };
}

/** A run that never ends by itself on the first node, watched on the second. */
async function givenHanging(place: Place) {
  const { one, two } = await givenTwo(place);
  const watching = await two.live(live);
  await watching.until(({ type }) => type === "ready");
  const { status, body } = await one.ask("POST", inputs, { input: "hang on one" });
  expect(status).toBe(202);
  await watching.until(isEvent("message.added"));
  return { one, two, watching, runId: body.runId as string };
}

/** On places that nobody has yet. */
export function describeProcesses(openPlace: () => Place): void {
  test("5.12 a client of one sees the run of the other end when that is killed with -9", async () => {
    const { one, two, watching, runId } = await givenHanging(openPlace());
    expect((await two.ask("GET", `${scope}/runs/active`)).body).toMatchObject({ runId, status: "active" });
    await one.end("SIGKILL");
    await watching.until(isEvent("turn.committed"));
    expect(keptOf(watching.frames)).toMatchObject(await logOf(two, main));
    expect(watching.types.filter((type) => type === "turn.resumed")).toHaveLength(1);
    await settledOn(two, scope);
    const { messages, activeRun } = (await two.ask("GET", `${scope}/state`)).body;
    expect(messages.at(-1).content[0].text).toBe("From two.");
    expect(activeRun).toBeNull();
  });

  test("5.7 an interrupt given to one stops the run of the other", async () => {
    const { one, two, watching, runId } = await givenHanging(openPlace());
    const mismatch = await two.ask("POST", `${scope}/interrupt`, { expectedRunId: "another" });
    expect(mismatch).toMatchObject({ status: 202, body: { status: "active_run_mismatch", runId } });
    const asked = await two.ask("POST", `${scope}/interrupt`, { expectedRunId: runId, reason: "enough" });
    expect(asked).toMatchObject({ status: 202, body: { status: "accepted", runId } });
    await watching.until(isEvent("turn.ended"));
    expect((await logOf(one, main)).at(-1)).toMatchObject({ status: "interrupted", reason: "enough" });
    const again = await two.ask("POST", `${scope}/interrupt`, { expectedRunId: runId });
    expect(again.body).toEqual({ status: "already_terminal", runId });
  });

  test("5.8 an answer given to one reaches the run of the other, which goes on by itself", async () => {
    const { one, two } = await givenTwo(openPlace());
    const watching = await two.live(live);
    const { runId } = (await one.ask("POST", inputs, { input: "add", questions: "wait" })).body;
    await watching.until(isEvent("interaction.opened"));
    const [{ id }] = (await two.ask("GET", `${scope}/state`)).body.interactions;
    const answers = await Promise.all(
      [two, one, two, one].map((node) =>
        node.ask("POST", `${scope}/responses`, { interactionId: id, answer: { approved: true } }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    await watching.until(isEvent("turn.committed"));
    expect((await two.ask("GET", `${scope}/runs`)).body.runs).toMatchObject([{ runId, status: "completed" }]);
    expect(keptOf(watching.frames).filter(({ type }) => type === "tool.returned")).toHaveLength(1);
  });

  test("5.13 a parked turn outlives the process that asked; of answers to another, one resumes it", async () => {
    const { one, two } = await givenTwo(openPlace());
    const watching = await two.live(live);
    await one.ask("POST", inputs, { input: "add" });
    await watching.until(isEvent("interaction.opened"));
    await until(async () => (await two.ask("GET", `${scope}/runs/active`)).body === null);
    await one.end("SIGKILL");
    const [{ id }] = (await two.ask("GET", "/interactions")).body.interactions;
    const answer = { interactionId: id, answer: { approved: true } };
    const answers = await Promise.all([1, 2, 3].map(() => two.ask("POST", `${scope}/responses`, answer)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    await watching.until(isEvent("turn.committed"));
    const kept = keptOf(watching.frames).map(({ type }) => type);
    for (const type of ["turn.resumed", "tool.returned"]) expect(kept.filter((each) => each === type)).toHaveLength(1);
  });

  test("6.11, 5.12 a server that is told to end hands its run over, ends its streams and is gone", async () => {
    const { one, two, watching } = await givenHanging(openPlace());
    const near = await one.live(live);
    await near.until(({ type }) => type === "ready");
    const ended = one.end("SIGTERM");
    await near.toEnd();
    expect(near.frames.at(-1)).toMatchObject({ type: "end", reason: "closing" });
    expect(await ended).toBe(0);
    await watching.until(isEvent("turn.committed"));
    const { after } = near.frames.at(-1) as { after: number };
    const rest = await two.live(`${live}?after=${after}`);
    await rest.until(({ type }) => type === "ready");
    expect([...keptOf(near.frames), ...keptOf(rest.frames)]).toMatchObject(await logOf(two, main));
  });

  test("5.3 of fifty simultaneous inputs to both, exactly one is accepted", async () => {
    const { one, two } = await givenTwo(openPlace());
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => {
        const node = i % 2 ? one : two;
        return node.ask("POST", inputs, { input: `hang on ${node.name}` });
      }),
    );
    const [accepted, ...more] = answers.filter(({ status }) => status === 202);
    expect(more).toEqual([]);
    for (const answer of answers) {
      if (answer === accepted) continue;
      expect(expectProblem(answer, 409, "run_active").data.runId).toBe(accepted!.body.runId);
    }
    const { seq, activeRun } = (await two.ask("GET", `${scope}/state`)).body;
    expect({ seq, runId: activeRun.runId }).toEqual({ seq: 3, runId: accepted!.body.runId });
  });

  test.each(["reject", "queue", "interrupt"])(
    "5.6 an idempotency key sent to both again and again is one turn, with ifActive %s",
    async (ifActive) => {
      const { one, two } = await givenTwo(openPlace());
      const headers = { "idempotency-key": "k" };
      const submit = (node: Node) => node.ask("POST", inputs, { input: "count", ifActive }, headers);
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => submit(i % 2 ? one : two)));
      await settledOn(one, scope);
      answers.push(await submit(one), await submit(two));
      for (const { status } of answers) expect(status).toBe(202);
      expect(new Set(answers.map(({ body }) => body.inputId)).size).toBe(1);
      expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
      const { runs } = (await two.ask("GET", `${scope}/runs`)).body;
      // A process that was not given the processor for long loses its turn to the other, which goes on with it as another run.
      expect(new Set(runs.map(({ turnId }: { turnId: string }) => turnId)).size).toBe(1);
      expect(runs[0].runId).toBe(answers[0]!.body.runId);
      expect(runs.at(-1).status).toBe("completed");
      const other = await two.ask("POST", inputs, { input: "other", ifActive }, headers);
      expectProblem(other, 422, "idempotency_conflict");
    },
  );

  test("5.4–5.5 an input to one waits for, or takes the place of, the run of the other", async () => {
    const { one, two, runId } = await givenHanging(openPlace());
    const queued = await two.ask("POST", inputs, { input: "later", ifActive: "queue" });
    expect(queued).toMatchObject({ status: 202, body: { status: "queued" } });
    const now = await two.ask("POST", inputs, { input: "now", ifActive: "interrupt" });
    expect(now).toMatchObject({ status: 202, body: { status: "started" } });
    const messages = await until(async () => {
      const { body } = await one.ask("GET", `${scope}/state`);
      return body.openTurn === undefined && body.messages.length === 5 && body.messages;
    });
    const texts = messages.map((message: { content: { text: string }[] }) => message.content[0]!.text.split(":")[0]);
    expect(texts).toEqual(["hang on one", ...["now", "now"], ...["later", "later"]]);
    const { runs } = (await one.ask("GET", `${scope}/runs`)).body;
    expect(runs).toMatchObject([{ runId, status: "interrupted" }, { status: "completed" }, { status: "completed" }]);
  });

  test("3.6, 4.5 what runs on one keeps the other from deleting it", async () => {
    const { two } = await givenHanging(openPlace());
    expectProblem(await two.ask("DELETE", "/sessions/s"), 409, "run_active");
    await two.ask("POST", `${scope}/interrupt`);
    await settledOn(two, scope);
    await until(async () => (await two.ask("DELETE", "/sessions/s")).status === 204);
  });

  test("8.3 agents stored through one are known to the other, in their newest form", async () => {
    const { one, two } = await givenTwo(openPlace());
    const path = "/agents/x/sessions/s/branches/main";
    const run = async (node: Node) => {
      expect((await node.ask("POST", `${path}/inputs`, { input: "Hi" })).status).toBe(202);
      await settledOn(node, path);
      return (await node.ask("GET", `${path}/state`)).body.messages.at(-1).content[0].text;
    };
    const stored = await one.ask("POST", "/agents", { agentId: "x", config: { model: "scripted/a" } });
    expect(stored.status).toBe(201);
    expect((await two.ask("GET", "/agents/x")).body).toEqual(stored.body);
    expect(await run(two)).toBe("From A.");
    expect((await two.ask("PUT", "/agents/x", { config: { model: "scripted/b" } })).status).toBe(200);
    expect(await run(one)).toBe("From B.");
    expect(await run(two)).toBe("From B.");
    expect((await one.ask("DELETE", "/agents/x")).status).toBe(204);
    expectProblem(await two.ask("POST", `${path}/inputs`, { input: "Hi" }), 404, "agent_not_found");
  });
}
