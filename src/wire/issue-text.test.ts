import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { issueText } from "./issue-text.ts";
import { bodies, queries } from "./schemas.ts";

function sentence(schema: v.GenericSchema, value: unknown): string {
  const { issues, success } = v.safeParse(schema, value, { abortEarly: true });
  expect(success).toBe(false);
  return issueText(issues!);
}

describe("what is wrong with a request", () => {
  test.each<[unknown, string]>([
    ["Hi", "The value must be an object."],
    [{ input: 5 }, '"input" must be a string or a list.'],
    [{ input: [{ type: "text", text: 5 }] }, '"input.0.text" must be a string.'],
    [{ input: [{ type: "file" }] }, '"input.0.data" is missing.'],
    [{ input: [{ role: "assistant", content: "Hi" }] }, '"input.0.role" must be "user".'],
    [{ input: [{ role: "user", content: [{ type: "text", text: 5 }] }] }, '"input.0.content.0.text" must be a string.'],
    [{ input: "Hi", ifActive: "wait" }, '"ifActive" must be "reject", "queue", "steer" or "interrupt".'],
    [{ input: "Hi", metadata: [] }, '"metadata" must be an object.'],
    [{ input: "Hi", inputs: [] }, 'Unknown key "inputs".'],
    [{ input: "Hi", config: { temperature: "hot" } }, '"config.temperature" must be a number.'],
    [{ input: "Hi", config: { stop: Array(17).fill("x") } }, '"config.stop" must have at most 16 items.'],
    [{ input: "Hi", config: { limits: { iterations: 1.5 } } }, '"config.limits.iterations" must be an integer.'],
    [{ input: "Hi", config: { limits: { iterations: 0 } } }, '"config.limits.iterations" must be at least 1.'],
    [{ input: "Hi", output: {} }, '"output.schema" is missing.'],
    [{ input: "Hi", output: { shema: {} } }, 'Unknown key "output.shema". Did you mean "schema"?'],
    [
      { input: [{ type: "file", data: "http://10.0.0.1/x" }] },
      '"input.0.data": a file must be base64, a data URL, a reference to stored content, or an https address with a public name.',
    ],
  ])("an input: %j", (body, told) => {
    expect(sentence(bodies.input, body)).toBe(told);
  });

  test("a missing key that is there misspelt, and an id that is none", () => {
    expect(sentence(bodies.updateSession, { metdata: {} })).toBe('Unknown key "metdata". Did you mean "metadata"?');
    expect(sentence(bodies.updateSession, {})).toBe('"metadata" is missing.');
    expect(sentence(bodies.createSession, { sessionId: "a/b" })).toBe(
      '"sessionId" must be an id without slashes and control characters that does not begin with "~".',
    );
    expect(sentence(bodies.createSession, { sessionId: "x".repeat(129) })).toBe(
      '"sessionId" must have at most 128 characters.',
    );
  });

  test("a query", () => {
    expect(sentence(queries.events, { limit: "x" })).toBe('"limit" must be an integer ≥ 0.');
    expect(sentence(queries.events, { turnId: "" })).toBe('"turnId" must not be empty.');
  });

  test("never repeats what was received", () => {
    const secret = "my secret words";
    expect(sentence(bodies.input, { input: [{ type: secret, text: secret }] })).not.toContain(secret);
    expect(sentence(bodies.respond, { interactionId: 5, answer: secret })).not.toContain(secret);
  });
});
