// Streaming UI loop: how a terminal UI handles the events of a run. One `for await` and one switch cover streamed text and
// reasoning, tools with their progress, retries of both, a question, and the end.

import { setTimeout as wait } from "node:timers/promises";
import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";
import { ask, flow, paint } from "../terminal.mjs";

const tools = {
  download: defineTool({
    description: "Downloads the measurements of a weather station.",
    input: z.object({ station: z.string() }),
    // A generator's yielded values are shown as progress; its return value is the result.
    async *execute() {
      for (let percent = 25; percent <= 100; percent += 25) {
        await wait(30);
        yield { percent };
      }
      return { days: 31, mean: 11.4 };
    },
  }),
  archive: defineTool({
    description: "The mean temperature of a month in earlier years.",
    input: z.object({ station: z.string() }),
    retry: { attempts: 3, delayMs: 40 },
    execute(_, { attempt }) {
      if (attempt === 1) throw new Error("the archive is busy");
      return { mean: 10.1 };
    },
  }),
  publish: defineTool({
    description: "Publishes a sentence on the website.",
    input: z.object({ sentence: z.string() }),
    permission: true,
    effect: "once",
    execute: () => "published",
  }),
};

const sentence = "October in Lindau was 1.3 degrees too warm.";
const model = modelFor((prompt, call) => {
  const isDenied = prompt.at(-1).content[0].output?.type === "execution-denied";
  const script = [
    // The provider fails in the middle of a sentence: the text shown so far is void.
    { text: "I will look at the", error: Object.assign(new Error("Overloaded"), { statusCode: 529 }) },
    {
      reasoning: "Two numbers are needed: this October's mean, and that of earlier years. Both can be had at once.",
      text: "I'll get the measurements and the archive's mean.",
      calls: [
        { name: "download", input: { station: "Lindau" } },
        { name: "archive", input: { station: "Lindau" } },
      ],
    },
    { text: "I have both; now the website.", calls: [{ name: "publish", input: { sentence } }] },
    isDenied ? "Then it stays between us." : `It is online: "${sentence}"`,
  ];
  return script[call];
});

const agent = createAgent({ name: "weather", model, tools, retry: { baseMs: 100 } });
await agent.createSession("weather");
console.log(aboutModel, "\n");
await show(agent.run("Was October in Lindau warmer than usual? Publish a sentence.", { sessionId: "weather" }));
await agent.close();

async function show(run) {
  /** The paragraph of text or reasoning that is being streamed. */
  let paragraph;
  const say = (mark, text) => console.log(`  ${mark} ${text}`);
  for await (const event of run) {
    switch (event.type) {
      // Live events: shown, never stored.
      case "reasoning-start":
        process.stdout.write(paint("gray", "  ~ "));
        paragraph = flow(4, "gray");
        break;
      case "text-start":
        process.stdout.write("  ");
        paragraph = flow(2);
        break;
      case "reasoning-delta":
      case "text-delta":
        paragraph.write(event.text);
        break;
      case "reasoning-end":
      case "text-end":
        paragraph.end();
        paragraph = undefined;
        break;
      case "model-retry":
        // The next attempt is a new message; a UI that can should remove the old one.
        paragraph?.end();
        paragraph = undefined;
        say(paint("yellow", "!"), `${event.error.message}; trying again in ${(event.delayMs / 1000).toFixed(1)} s`);
        break;
      case "tool-start":
        say(paint("cyan", ">"), event.toolName);
        break;
      case "tool-progress":
        say(paint("gray", "…"), paint("gray", `${event.toolName} ${event.output.percent} %`));
        break;
      case "tool-retry":
        say(
          paint("yellow", "!"),
          `${event.toolName}: ${event.error.message}; attempt ${event.attempt + 1} of ${event.attempts}`,
        );
        break;
      case "limit-reach":
        say(paint("yellow", "!"), `limit reached: ${event.limit}`);
        break;
      case "events-drop":
        say(paint("gray", "…"), `${event.count} events were missed`);
        break;
      case "run-end":
        say(paint("green", "="), `${event.status}${event.error ? `: ${event.error.message}` : ""}`);
        break;

      // Kept events: facts in the log, shown once they are durable.
      case "tool.returned":
        say(paint("green", "<"), `${event.toolName} ${JSON.stringify(event.output.value ?? event.output.reason)}`);
        break;
      case "interaction.opened": {
        const { toolName, input } = event.request;
        const answer = await ask(`  ${paint("magenta", "?")} ${toolName} "${input.sentence}" [y/n] `, "y");
        await run.respond(event.id, { approved: answer.startsWith("y") });
        break;
      }
      // A UI can ignore all other events, so a new kind of event never breaks an old loop.
    }
  }
}
