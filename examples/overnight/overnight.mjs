// Overnight: a workflow asks for an approval, sleeps until the next morning, and goes on. Asleep, it is nothing but a row in
// the store: each part of the day is a runner of its own, which is closed. The clock is injected, so the night takes no time.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createAgent } from "bough";
import { createWorkflow, workflow } from "bough/workflows";
import { aboutModel, modelFor } from "../model.mjs";

const hour = 3_600_000;
let ahead = Date.UTC(2030, 4, 6, 17, 0) - Date.now();
/** Runs like the clock on the wall, and can be put forward. */
const clock = {
  now: () => Date.now() + ahead,
  sleep: (ms, signal) => wait(Math.min(ms, 2 ** 31 - 1), undefined, { signal }).catch(() => {}),
};
const putForward = (hours) => {
  ahead += hours * hour;
};
const say = (text) => console.log(`${new Date(clock.now()).toISOString().slice(0, 16).replace("T", " ")}  ${text}`);

const writer = createAgent({
  name: "writer",
  instructions: "Write a newsletter of one sentence.",
  model: modelFor(() => "The garden opens on Friday."),
});

const newsletter = workflow("newsletter", async (flow, topic) => {
  const draft = await flow.agent("write", writer, topic);
  await flow.step("show", () => say(`draft: ${draft.text.split("\n")[0].slice(0, 50)}`));
  const { approved } = await flow.ask("send", { request: { draft: draft.text } });
  if (!approved) return "withdrawn";
  const asked = await flow.now("approved at");
  const morning = asked - (asked % (24 * hour)) + 32 * hour; // 8 o'clock of the next day
  await flow.until("morning", morning);
  await flow.step("send", () => say("sent, once"));
  return "sent";
});

const place = mkdtempSync(join(tmpdir(), "bough-overnight-"));

/** What another process would do: it opens the store, does its part, and is gone. */
async function part(work) {
  const runner = createWorkflow(newsletter, { store: `sqlite:${join(place, "bough.db")}`, clock });
  try {
    return await work(runner, runner.scope("may"));
  } finally {
    await runner.close();
  }
}

try {
  console.log(aboutModel);
  const question = await part(async (runner) => {
    const { status, interactions } = await runner.run("The garden", { executionId: "may" }).result;
    say(`${status}: a person has to say yes`);
    return interactions[0].id;
  });

  putForward(2);
  await part(async (runner, scope) => {
    const run = await runner.respond(scope, question, { approved: true });
    say(`approved; ${(await run.result).status} until the morning`);
  });

  putForward(5);
  await part(async (runner, scope) => {
    const { asleep } = await runner.getBranch(scope);
    say(asleep ? "asleep: nobody has to do anything" : "awake");
  });

  putForward(8);
  await part(async (runner, scope) => {
    const stop = runner.keepRecovering({ everyMs: 20 }); // what every process that runs the workflow does
    for await (const { type } of runner.branch(scope).watch()) if (type === "turn.committed") break;
    await stop();
    const { status } = (await runner.loadBranch(scope)).turns.at(-1);
    say(`the execution is ${status}`);
  });
} finally {
  rmSync(place, { recursive: true, force: true });
}
