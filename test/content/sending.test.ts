// How stored files are sent: budgets, notes, web addresses, requests that are too large, packages that refuse a type; and what
// else happens to a branch meanwhile.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type FilePart, filesOf } from "../../src/events/files.ts";
import { defineTool, type LanguageModel, type Message } from "../../src/index.ts";
import { countLeftOut } from "../../src/runs/files/budget.ts";
import { type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { eventsOf, given, main, ofType, s } from "../agent/kit.ts";
import { bigPng, png, utf8 } from "./files.ts";

const picture = (size: number, seed: number) =>
  ({ type: "file", mediaType: "image/png", filename: `p${seed}.png`, data: bigPng(size, seed) }) as const;

/** What a call was sent of each file: its name, or its note. */
function shown({ prompt }: ScriptedModel["calls"][number]): string[] {
  return prompt.flatMap(({ content }) =>
    typeof content === "string"
      ? []
      : content.flatMap((part) => {
          if (part.type === "file") return [String(part.filename)];
          return part.type === "text" && part.text.startsWith("[image") ? [part.text] : [];
        }),
  );
}

const asOf = (model: ScriptedModel, provider: string, more: Partial<LanguageModel> = {}): LanguageModel => ({
  ...model,
  provider,
  ...more,
});

describe("the budget", () => {
  test("of one file", async () => {
    const { agent, model } = await given(["One."], { content: { inline: { perFile: 1_000 } } });
    await agent.run([picture(1_001, 1), picture(1_000, 2)], s).text();
    expect(shown(model.calls[0]!)).toEqual(["[image p1.png, 1.0 KB: not sent (too large for this call)]", "p2.png"]);
  });

  test("of one call: the oldest go, several at once, so that the prompts after begin alike", async () => {
    const script = Array.from({ length: 9 }, () => "Yes.");
    const { agent, model } = await given(script, { content: { inline: { perCall: 4_000 } } });
    for (let i = 1; i <= 9; i++) await agent.run([picture(1_000, i)], s).text();
    const left = model.calls.map((call) => shown(call).filter((each) => each.startsWith("[")).length);
    expect(left).toEqual([0, 0, 0, 0, 3, 3, 3, 6, 6]);
    const prompts = model.calls.map(({ prompt }) => prompt.map((message) => JSON.stringify(message)));
    const isPrefix = prompts
      .slice(1)
      .map((prompt, i) => prompt.slice(0, prompts[i]!.length).join() === prompts[i]!.join());
    expect(isPrefix).toEqual([true, true, true, false, true, true, false, true]);
  });

  test("another process decides alike", async () => {
    const options = { content: { inline: { perCall: 2_500 } } };
    const { agent, again, model } = await given(["A.", "B.", "C.", "D."], options);
    for (let i = 1; i <= 4; i++) await agent.run([picture(1_000, i)], s).text();
    const restarted = scriptedModel(["E."]);
    await again({ model: restarted }).run("And now?", s).text();
    const before = JSON.stringify(model.calls[3]!.prompt).slice(0, -1);
    expect(JSON.stringify(restarted.calls[0]!.prompt).slice(0, before.length)).toBe(before);
  });

  test("a message with more than a call takes keeps its newest files", () => {
    expect(countLeftOut([[3, 3, 3, 3]], 7)).toBe(2);
    expect(countLeftOut([[3], [3, 3]], 7)).toBe(1);
    expect(countLeftOut([[3], [9]], 7)).toBe(2);
    expect(countLeftOut([], 7)).toBe(0);
  });
});

describe("a request that the provider refuses as too large", () => {
  const tooLarge = { statusCode: 413, message: "Request Entity Too Large" };
  /** Takes so many bytes of files. */
  const bounded = (most: number) =>
    scriptedModel((prompt) => {
      const size = prompt
        .flatMap((message) => filesOf(message as Message))
        .reduce((sum, { data }) => sum + lengthOf(data), 0);
      return size > most ? { error: tooLarge } : "Yes.";
    });
  const lengthOf = (data: FilePart["data"]) => (data.data as unknown as Uint8Array).length;

  test("is sent with half the bytes, never as it was, and the branch remembers", async () => {
    const model = bounded(2_000);
    const { agent, again } = await given([], { model });
    const run = agent.run(
      [1, 2, 3, 4].map((seed) => picture(1_000, seed)),
      s,
    );
    expect(await run.text()).toBe("Yes.");
    expect(model.calls.map((call) => shown(call).filter((each) => each.startsWith("p")).length)).toEqual([4, 2]);
    expect(await agent.run("And now?", s).text()).toBe("Yes.");
    expect(model.calls).toHaveLength(3);
    const restarted = bounded(2_000);
    await again({ model: restarted }).run("And then?", s).text();
    expect(restarted.calls).toHaveLength(1);
    expect((await agent.events(main, { limit: 100 })).map(({ type }) => type)).not.toContain("history.compacted");
  });

  test("goes without any file in the end, and then fails as any other", async () => {
    const model = scriptedModel(() => ({ error: tooLarge }));
    const { agent } = await given([], { model, compaction: false });
    const result = await agent.run(
      [1, 2, 3, 4].map((seed) => picture(1_000, seed)),
      s,
    ).result;
    expect(result).toMatchObject({ status: "failed", error: { code: "context_overflow" } });
    expect(model.calls.map((call) => shown(call).filter((each) => each.startsWith("p")).length)).toEqual([4, 2, 1, 0]);
    const bodies = model.calls.map(({ prompt }) => JSON.stringify(prompt));
    expect(new Set(bodies).size).toBe(bodies.length);
  });

  test("another model begins with the whole budget", async () => {
    const model = bounded(1_000);
    const { agent } = await given([], {
      model,
      models: { other: asOf(bounded(9_000), "bough", { modelId: "other" }) },
    });
    await agent.run([picture(1_000, 1), picture(1_000, 2)], s).text();
    expect(model.calls).toHaveLength(2);
    const result = await agent.run("And now?", { ...s, config: { model: "other" } }).result;
    expect(result.status).toBe("completed");
  });
});

describe("a type that the model does not take", () => {
  class Unsupported extends Error {
    override readonly name = "AI_UnsupportedFunctionalityError";
    readonly functionality: string;
    constructor(functionality: string) {
      super(`'${functionality}' functionality not supported.`);
      this.functionality = functionality;
    }
  }

  test("is known after the package refused it once, and nothing was sent for that", async () => {
    const scripted = scriptedModel((prompt) => {
      const file = prompt
        .flatMap((message) => filesOf(message as Message))
        .find(({ mediaType }) => mediaType === "video/mp4");
      return file ? { error: new Unsupported("file part media type video/mp4") } : "Yes.";
    });
    const { agent } = await given([], { model: asOf(scripted, "somebody") });
    const video = { type: "file", mediaType: "video/mp4", filename: "a.mp4", data: utf8("not a video") } as const;
    const events = await eventsOf(agent.run([video, picture(100, 1)], s));
    expect(ofType(events, "model-retry")).toEqual([]);
    expect(scripted.calls).toHaveLength(2);
    const [sent] = scripted.calls.slice(-1);
    expect(JSON.stringify(sent!.prompt)).toContain("[video a.mp4, 11 bytes: not sent (the model takes no video/mp4)]");
    expect(shown(sent!)).toEqual(["p1.png"]);
  });

  test("an error about something else is not tried again", async () => {
    const scripted = scriptedModel(() => ({ error: new Unsupported("tool choice type: tool") }));
    const { agent } = await given([], { model: asOf(scripted, "somebody") });
    expect((await agent.run([picture(100, 1)], s).result).status).toBe("failed");
    expect(scripted.calls).toHaveLength(1);
  });

  test("`accepts` says what a package takes", async () => {
    const { agent, model } = await given(["Yes."], { content: { accepts: ["application/pdf"] } });
    await agent.run([picture(100, 1)], s).text();
    expect(shown(model.calls[0]!)).toEqual(["[image p1.png, 100 bytes: not sent (the model takes no image/png)]"]);
  });
});

describe("web addresses", () => {
  const file = {
    type: "file",
    mediaType: "image/png",
    data: { type: "url", url: "https://example.com/tree.png" },
  } as const;

  test("are passed on to a model that opens them", async () => {
    const scripted = scriptedModel(["Yes."]);
    const model = asOf(scripted, "somebody", { supportedUrls: Promise.resolve({ "image/*": [/^https:\/\//g] }) });
    const { agent } = await given([], { model });
    await agent.run([file], s).text();
    expect(filesOf(scripted.calls[0]!.prompt[0] as Message)).toMatchObject([{ data: { url: new URL(file.data.url) } }]);
  });

  test("are a note for any other model, and nothing is fetched", async () => {
    const { agent, model } = await given(["Yes."]);
    await agent.run([file], s).text();
    expect(JSON.stringify(model.calls[0]!.prompt)).toContain(
      "not sent (the model can't open https://example.com/tree.png)",
    );
  });
});

describe("V3 models", () => {
  test("get bytes, in what users say and what tools return", async () => {
    const image = png();
    const look = defineTool({
      description: "Looks.",
      input: z.object({}),
      execute: () => ({ type: "content", value: [{ type: "file", mediaType: "image/png", data: image }] }),
      toOutput: (output) => output as never,
    });
    const model = scriptedModel([{ calls: [{ name: "look", input: {} }] }, "Yes."], { specificationVersion: "v3" });
    const { agent } = await given([], { model, tools: { look } });
    await agent.run([{ type: "file", mediaType: "image/png", data: image }], s).text();
    expect(model.calls[0]!.prompt[0]!.content).toMatchObject([{ type: "file", data: image }]);
    const [result] = model.calls[1]!.prompt.at(-1)!.content as unknown as [{ output: { value: object[] } }];
    const data = Buffer.from(image).toString("base64");
    expect(result.output.value).toEqual([{ type: "image-data", mediaType: "image/png", data }]);
  });
});

describe("with what else happens to a branch", () => {
  test("a fork and a reverted branch send the files of what they keep", async () => {
    const { agent, model } = await given(["A.", "B.", "C.", "D."]);
    await agent.run([picture(100, 1)], s).text();
    const { messages } = await agent.loadBranch("s");
    await agent.run([picture(100, 2)], s).text();
    const fork = await agent.forkBranch("s", { from: messages[1]!.id, newBranchId: "fork" });
    await agent.run("On the fork.", { sessionId: "s", branchId: fork.id }).text();
    expect(shown(model.calls[2]!)).toEqual(["p1.png"]);
    await agent.revertBranch(main, { to: messages[1]!.id });
    await agent.run("Reverted.", main).text();
    expect(shown(model.calls[3]!)).toEqual(["p1.png"]);
  });

  test("a summary lists the files, a second one too, and their bytes are sent no more", async () => {
    const script = ["A.", "About a tree.", "B.", "About trees.", "C."];
    const { agent, model } = await given(script);
    await agent.run([picture(100, 1)], s).text();
    await agent.compact("s", { keep: { turns: 0 } });
    await agent.run("More.", s).text();
    await agent.compact("s", { keep: { turns: 0 } });
    await agent.run("And more.", s).text();
    const last = model.calls.at(-1)!;
    const { id } = (await agent.listContent("s"))[0]!;
    expect(shown(last)).toEqual([]);
    expect(JSON.stringify(last.prompt)).toContain(`p1.png, image/png: id ${id}`);
    for (const { prompt } of model.calls) expect(JSON.stringify(prompt)).not.toContain("bough-content");
  });

  test("a turn that a crash cut off is resumed elsewhere with its files", async () => {
    const { agent, again } = await given([{ error: Object.assign(new Error("gone"), { name: "AbortError" }) }]);
    const stop = new AbortController();
    const model = scriptedModel(() => {
      stop.abort();
      return new Promise<never>(() => {});
    });
    const first = again({ model });
    void first.run([picture(100, 1)], s).result.catch(() => {});
    await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
    await first.close();
    const restarted = scriptedModel(["Yes."]);
    expect(await again({ model: restarted }).run(undefined, s).text()).toBe("Yes.");
    expect(shown(restarted.calls[0]!)).toEqual(["p1.png"]);
    await agent.close();
  });
});
