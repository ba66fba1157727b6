// Models of specification V3 take the same messages and give the same message.

import { describe, expect, test } from "vitest";
import type { Part } from "../../src/events/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { addTool, ask, message, toolMessage } from "./kit.ts";

const reply = { reasoning: "Hm.", text: "Adding.", calls: [{ name: "add", input: { a: 1, b: 2 } }] };
const image: Part = { type: "file", mediaType: "image/png", data: { type: "data", data: "AQID" } };

describe("a model of V3", () => {
  test("gives the same message as one of V4", async () => {
    const [v3, v4] = [scriptedModel([reply], { specificationVersion: "v3" }), scriptedModel([reply])];
    const user = message("user", "sum");
    const heard = await ask(v3, [user], { tools: [addTool] });
    expect(heard.error).toBeUndefined();
    expect(heard.assembler.content).toEqual((await ask(v4, [user], { tools: [addTool] })).assembler.content);
  });

  test("gets files and tool results in its own shapes, where a V4 model gets them as they are", async () => {
    const output = { type: "content", value: [{ ...image }] } as const;
    const turn = [
      message("user", [image]),
      message("assistant", [{ type: "tool-call", toolCallId: "c", toolName: "add", input: {} }]),
      toolMessage("c", "add", output as never),
    ];
    const [v3, v4] = [scriptedModel(["ok"], { specificationVersion: "v3" }), scriptedModel(["ok"])];
    await ask(v3, turn);
    await ask(v4, turn);
    const sent = v3.calls[0]!.prompt;
    expect(sent[1]?.content).toEqual([{ ...image, data: "AQID" }]);
    expect(sent[3]?.content).toMatchObject([
      { output: { type: "content", value: [{ type: "image-data", data: "AQID", mediaType: "image/png" }] } },
    ]);
    expect(v4.calls[0]!.prompt.slice(1)).toEqual(turn);
  });
});
