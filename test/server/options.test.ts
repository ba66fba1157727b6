import { expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineEvent } from "../../src/index.ts";
import { createServer, type ServerOptions } from "../../src/server/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

test("an agent whose turns nobody behind a server would save is refused", () => {
  const options = { model: scriptedModel(["ok"]), persistAfterTurn: false };
  for (const agent of [options, createAgent(options)]) {
    expect(() => createServer({ agents: { helper: agent } })).toThrow(
      'Agent "helper" has persistAfterTurn: false, but a server can\'t persist its turns later.',
    );
  }
  expect(() => createServer({ agents: { helper: { ...options, persistAfterTurn: true } } })).not.toThrow();
});

const placed = () => defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
const [orderPlaced, otherOrder] = [placed(), placed()];
const says = (text: string) => ({ model: scriptedModel([text]) });

test.each([
  [{ resolveAgent: { x: 1 } }, "resolveAgent must be a function."],
  [
    { defaultAgent: createAgent(says("x")) },
    "defaultAgent must be the options of an agent, as createAgent takes them.",
  ],
  [{ defaultAgent: { ...says("x"), persistAfterTurn: false } }, "The default agent has persistAfterTurn: false"],
  [{ defaultAgents: says("x") }, 'may not have the key "defaultAgents". Did you mean "defaultAgent"?'],
  [{ limits: { agentIdleMs: "30m" } }, "limits.agentIdleMs must be a number ≥ 0."],
  [{ limits: { agentIdlems: 1 } }, 'Did you mean "agentIdleMs"?'],
  [{ agents: [says("x")] }, "agents must be an object of agents by id"],
  [{ events: orderPlaced }, "events must be a list of events made by defineEvent."],
  [{ events: [orderPlaced, orderPlaced] }, 'The event "order.placed" is defined twice.'],
  [{ events: [orderPlaced], agents: { a: { ...says("x"), events: [otherOrder] } } }, "is defined twice."],
  [{ events: [orderPlaced], defaultAgent: { ...says("x"), events: [otherOrder] } }, "is defined twice."],
  [{ questions: "maybe" }, 'questions must be one of "wait", "park".'],
])("%j is refused with what is wanted", (options, sentence) => {
  expect(() => createServer(options as ServerOptions)).toThrow(sentence);
});
