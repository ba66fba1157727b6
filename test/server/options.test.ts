import { expect, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { createServer } from "../../src/server/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

test("an agent whose turns nobody behind a server would save is refused", () => {
  const options = { model: scriptedModel(["ok"]), persistAfterTurn: false };
  for (const agent of [options, createAgent(options)]) {
    expect(() => createServer({ agents: { helper: agent } })).toThrow(
      'Agent "helper" has persistAfterTurn: false, but nothing behind a server saves its turns.',
    );
  }
  expect(() => createServer({ agents: { helper: { ...options, persistAfterTurn: true } } })).not.toThrow();
});
