import { jsonSchema } from "ai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { readOutput } from "../../src/runs/structured-output/output.ts";
import { add, adding, eventsOf, expectLegal, factTypes, given, main, ofType, refused, s, said } from "./kit.ts";

const output = z.object({ city: z.string(), people: z.number().int() });
const oslo = { city: "Oslo", people: 700_000 };
const answer = JSON.stringify(oslo);

describe("an answer that has to fit a schema", () => {
  test("becomes the result's output, and the model is told the schema", async () => {
    const { agent, model } = await given([answer]);
    const result = await agent.run("Where?", { ...s, output }).result;
    expect(result).toMatchObject({ status: "completed", output: oslo, text: answer });
    expect(model.calls[0]!.responseFormat).toMatchObject({
      type: "json",
      schema: { type: "object", properties: { city: { type: "string" } }, required: ["city", "people"] },
    });
  });

  test.each([
    ["a miss", ["Oslo.", answer], { iterations: 1 }],
    ["a call of another tool", [adding(), answer], { iterations: 1 }],
  ] as const)("is missed with an error when a limit stops the turn after %s", async (_, script, limits) => {
    const { agent, model } = await given(script, { tools: { add } });
    const {
      status,
      error,
      messages,
      output: none,
    } = await agent.run("Where?", { ...s, output, config: { limits } }).result;
    expect([status, error?.code, none, model.calls.length]).toEqual(["failed", "output_invalid", undefined, 1]);
    expect(error?.message).toBe("The turn stopped before the model returned its output: iteration-limit.");
    expectLegal(messages);
  });

  test("may have no properties but those of the schema, which some providers want to be told", async () => {
    const { agent, model } = await given(['{"a":[{"b":1}],"any":{}}']);
    const nested = z.object({
      a: z.array(z.object({ b: z.number() })),
      any: z.looseObject({}),
      map: z.record(z.string(), z.number()).optional(),
    });
    expect((await agent.run("What?", { ...s, output: nested }).result).status).toBe("completed");
    const { schema } = model.calls[0]!.responseFormat as { schema: unknown };
    expect(schema).toMatchObject({
      additionalProperties: false,
      properties: {
        a: { items: { additionalProperties: false } },
        any: { additionalProperties: {} },
        map: { additionalProperties: { type: "number" } },
      },
    });
  });

  test("may be an intersection, whose members stay open to each other", async () => {
    const allOf = ["c", "d"].map((name) => ({ type: "object", properties: { [name]: { type: "number" } } }));
    const { agent, model } = await given(['{"c":1,"d":2}']);
    expect((await agent.run("What?", { ...s, output: { type: "object", allOf } }).result).status).toBe("completed");
    expect(model.calls[0]!.responseFormat).toMatchObject({ schema: { allOf } });
    expect(JSON.stringify(model.calls[0]!.responseFormat)).not.toContain("additional");
  });

  test("is given out as the schema makes it", async () => {
    const { agent } = await given(['{"when":"2020-01-02"}']);
    const when = z.object({ when: z.string().transform((text) => text.length) });
    expect((await agent.run("When?", { ...s, output: when }).result).output).toEqual({ when: 10 });
  });

  test("may come fenced, or with words around it", async () => {
    const schema = { jsonSchema: {}, parse: async (value: unknown) => ({ value }) };
    const texts = [
      answer,
      `  ${answer}\n`,
      `\`\`\`json\n${answer}\n\`\`\``,
      `Here it is:\n\`\`\`\n${answer}\n\`\`\`\nHope that helps.`,
      `\`\`\`ts\nconst x = 1;\n\`\`\`\nand\n\`\`\`json\n${answer}\n\`\`\``,
      `Sure! ${answer} That is all.`,
      `As said [1], it is ${answer} (see [2]).`,
      `Use {curly} braces: ${answer}`,
    ];
    for (const text of texts) expect(await readOutput(schema, text), text).toEqual({ value: oslo });
  });

  test("of several objects is the one that fits", async () => {
    const parse = async (value: unknown) => {
      const read = output.safeParse(value);
      return read.success ? { value: read.data } : { problem: "no" };
    };
    const text = `First \`\`\`json\n{"draft":1}\n\`\`\` then \`\`\`json\n${answer}\n\`\`\``;
    expect(await readOutput({ parse }, text)).toEqual({ value: oslo });
  });

  test.each(["", "no", "42", '"text"', "[1]", "{", "}{", '{"a":', "null"])("is not to be found in %j", async (text) => {
    const schema = { jsonSchema: {}, parse: async (value: unknown) => ({ value }) };
    expect(await readOutput(schema, text)).toEqual({ problem: "It is not a JSON object." });
  });

  test("in a long text without one is not looked for in vain for ever", async () => {
    const schema = { jsonSchema: {}, parse: async (value: unknown) => ({ value }) };
    expect(await readOutput(schema, "{ ".repeat(50_000))).toHaveProperty("problem");
    expect(await readOutput(schema, `${"{a ".repeat(20_000)}}`)).toHaveProperty("problem");
  });

  test("is asked for again once, with what was wrong, all of it in the log", async () => {
    const { agent, model } = await given(['{"city":"Oslo"}', answer]);
    const result = await agent.run("Where?", { ...s, output }).result;
    expect(result).toMatchObject({ status: "completed", output: oslo, iterations: 2 });
    expect(said(model.calls[1]!.prompt)).toEqual([
      "user: Where?",
      'assistant: {"city":"Oslo"}',
      expect.stringMatching(/^user: .*people/),
    ]);
    expect(await factTypes(agent)).toEqual([
      "turn.started",
      "message.added",
      "message.added",
      "message.added",
      "message.added",
      "turn.committed",
    ]);
  });

  test("that never fits fails the turn and keeps what was said", async () => {
    const { agent, model } = await given(["no", "still no", "Back."]);
    const run = agent.run("Where?", { ...s, output });
    const events = await eventsOf(run);
    const result = await run.result;
    expect(result).toMatchObject({ status: "failed", reason: "output_invalid", text: "still no" });
    expect(result.output).toBeUndefined();
    expect(ofType(events, "turn.ended")).toMatchObject([{ status: "failed", error: { code: "output_invalid" } }]);
    expect(said((await agent.loadBranch("s")).messages).at(-1)).toBe("assistant: still no");
    await agent.run("Again", s).result;
    expectLegal(model.calls[2]!.prompt);
  });

  test("makes text() reject when it never fits", async () => {
    const { agent } = await given(["no", "no"]);
    await refused(agent.run("Where?", { ...s, output }).text(), "output_invalid");
  });

  test("comes after the tools it needs", async () => {
    const { agent, model } = await given([adding(), '{"sum":"three"}', adding(2, 2), '{"sum":3}'], { tools: { add } });
    const sum = z.object({ sum: z.number() });
    const result = await agent.run("1 and 2?", { ...s, output: sum }).result;
    expect(result.output).toEqual({ sum: 3 });
    for (const { prompt } of model.calls) expectLegal(prompt);
    expect(result.iterations).toBe(4);
  });

  test("is repaired once in each turn, not once in a conversation", async () => {
    const { agent } = await given(["no", answer, "no", answer]);
    await agent.run("1", { ...s, output }).result;
    expect((await agent.run("2", { ...s, output }).result).output).toEqual(oslo);
  });

  test("can be said in JSON Schema, with and without a validator", async () => {
    const { agent } = await given([answer, answer, '{"people":1}', answer]);
    const plain = { type: "object", properties: { city: { type: "string" } } } as const;
    expect((await agent.run("Where?", { ...s, output: plain }).result).output).toEqual(oslo);
    const typed = jsonSchema<{ city: string }>(plain);
    expect((await agent.run("Where?", { ...s, output: typed }).result).output).toEqual(oslo);
    const checked = jsonSchema<{ city: string }>(plain, {
      validate: (value) =>
        "city" in Object(value)
          ? { success: true, value: value as { city: string } }
          : { success: false, error: new Error("city is missing") },
    });
    expect((await agent.run("Where?", { ...s, output: checked }).result).output).toEqual(oslo);
  });

  test("works without a scope", async () => {
    const { agent } = await given(["no", answer]);
    expect((await agent.run("Where?", { output }).result).output).toEqual(oslo);
  });

  test("that can't be asked for is refused before anything is written", async () => {
    const { agent } = await given(["never"]);
    await refused(agent.run("Where?", { ...s, output: z.string() }).result, "invalid_argument");
    expect(await factTypes(agent)).toEqual([]);
  });
});

describe("a run that is left in the middle of a repair", () => {
  /** A turn whose first answer did not fit, left behind while the second one was being made. */
  async function leftInRepair(again: string[]) {
    const setting = await given(["no"]);
    const run = setting.agent.run("Where?", { ...s, output });
    await eventsOf(run, (event) => {
      if (event.type === "iteration-start" && event.iteration === 2) void run.park();
    });
    expect((await run.result).status).toBe("parked");
    return setting.again({ script: again });
  }

  test("is taken up there", async () => {
    const agent = await leftInRepair([answer]);
    const result = await agent.run(undefined, { ...s, output }).result;
    expect(result).toMatchObject({ status: "completed", output: oslo });
    expect((await agent.loadBranch("s")).messages).toHaveLength(4);
  });

  test("has no second repair", async () => {
    const agent = await leftInRepair(["no"]);
    expect(await agent.run(undefined, { ...s, output }).result).toMatchObject({ reason: "output_invalid" });
    expect((await agent.events(main)).at(-1)).toMatchObject({ type: "turn.ended", status: "failed" });
  });
});
