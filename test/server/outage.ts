// A store that goes away and comes back: requests are refused while it is gone, streams end with their cursor, and nothing has
// to be started again.

import { expect, test } from "vitest";
import { expectProblem, isEvent, scope, until } from "./kit.ts";
import { keptOf, logOf, Node, type Place, settledOn } from "./process.ts";

const main = "/sessions/s/branches/main";
const live = `${scope}/events/live`;

export function describeOutage(openPlace: () => Place, restart: () => Promise<void>): void {
  test("8.6, 6.11 a server outlives its store's outage, with its runs and its readers", async () => {
    const node = await Node.start("one", openPlace(), { isQuiet: true });
    await node.ask("POST", "/sessions", { sessionId: "s" });
    const first = await node.live(live);
    await first.until(({ type }) => type === "ready");
    await node.ask("POST", `${scope}/inputs`, { input: "before" });
    await first.until(isEvent("message.added"));
    const back = restart();
    // Whatever is asked meanwhile gets an answer, and no more than a problem.
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    void back.then(over, over);
    while (!isOver) {
      const answer = await node.ask("GET", `${scope}/state`);
      if (answer.status !== 200) expectProblem(answer, answer.status, answer.body.code);
    }
    await back;
    await until(async () => (await node.ask("GET", "/ready")).status === 200);
    await settledOn(node, scope);
    const accepted = await until(async () => {
      const answer = await node.ask("POST", `${scope}/inputs`, { input: "after" }, { "idempotency-key": "k" });
      return answer.status === 202 && answer;
    });
    await until(
      async () => (await node.ask("GET", `${scope}/runs/${accepted.body.runId}`)).body.status === "completed",
    );
    const log = await logOf(node, main);
    // The stream went on, or ended in a way that can be resumed.
    await until(async () => {
      if (!first.isEnded && keptOf(first.frames).length < log.length) await first.readMore();
      return first.isEnded || keptOf(first.frames).length === log.length;
    });
    const rest = await node.live(`${live}?after=${keptOf(first.frames).at(-1)!.seq}`);
    await rest.until(({ type }) => type === "ready");
    expect([...keptOf(first.frames), ...keptOf(rest.frames)]).toMatchObject(log);
    const texts = (await node.ask("GET", `${scope}/state`)).body.messages.map(
      ({ role, content }: { role: string; content: { text: string }[] }) => role === "user" && content[0]!.text,
    );
    expect(texts.filter(Boolean)).toEqual(["before", "after"]);
  });
}
