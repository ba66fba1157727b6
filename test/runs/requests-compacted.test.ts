// A kept request meets compaction: what is compacted while a turn waits changes what its model sees of the history, and nothing of
// how the turn was asked.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool, keepTurns } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { given, s } from "../agent/kit.ts";

const ask = defineTool({ input: z.object({}), execute: async (_input, context) => context.ask("Go on?") });
const script = (prompt: readonly { role: string; content: unknown }[]) => {
  const last = prompt.at(-1)!;
  if (last.role === "tool") return "Done.";
  return JSON.stringify(last.content).includes("Go") ? { calls: [{ name: "ask", input: {} }] } : "Hello.";
};

test("a turn that waits while its history is compacted goes on as it was asked, in another process", async () => {
  const options = { tools: { ask }, logger: { warn: () => {} }, instructions: "You are a test." };
  const { agent, again } = await given(script as never, options);
  for (const text of ["One", "Two", "Three"]) await agent.run(text, s).result;
  const config = { temperature: 0.3, addInstructions: "Be brief.", maxOutputTokens: 77 };
  const asked = { config, output: z.object({ sum: z.number() }), by: "ada", questions: "park" } as const;
  const { interactions } = await agent.run("Go", { ...s, ...asked }).result;
  await agent.compact(s, { strategy: keepTurns(2) });

  const model = scriptedModel(script as never);
  const later = again({ ...options, model });
  const before = await later.recover({ resume: false });
  expect(before).toMatchObject([{ by: "ada", request: { config, output: { mode: "native" } } }]);
  const resumed = await later.respond(s, interactions![0]!.id, { answer: "yes" });
  await resumed!.result.catch(() => {});
  const call = model.calls[0] as unknown as Record<string, unknown> & { prompt: readonly { content: unknown }[] };
  expect(call).toMatchObject({ temperature: 0.3, maxOutputTokens: 77, responseFormat: { type: "json" } });
  const said = JSON.stringify(call.prompt);
  expect(said).toContain("Be brief.");
  expect(said).not.toContain('"One"');
  expect(said).toContain("Three");
});
