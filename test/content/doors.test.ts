// Every door through which bytes can come into a log, and what it refuses.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { contentIdOf, type FilePart, filesOf } from "../../src/events/files.ts";
import { type Agent, defineTool, type Message, type Middleware } from "../../src/index.ts";
import { eventsOf, given, main, ofType, refused, s } from "../agent/kit.ts";
import { base64, bigPng, png, utf8 } from "./files.ts";

const image = png(64, 64);
const other = png(32, 32, [200, 10, 10]);
const imageFile = { type: "file", mediaType: "image/png", data: image } as const;

/** Every file of a branch is a reference, its content is there, and no fact holds more than a kilobyte of bytes. */
async function expectReferences(agent: Agent, count: number): Promise<FilePart[]> {
  const { messages } = await agent.loadBranch("s");
  const files = messages.flatMap(filesOf);
  expect(files).toHaveLength(count);
  for (const file of files) {
    const stored = await agent.getContent(main, contentIdOf(file)!);
    expect((await stored.bytes()).length).toBeGreaterThan(0);
  }
  for (const fact of await agent.events(main, { limit: 1000 })) {
    const longest = JSON.stringify(fact).match(/[A-Za-z0-9+/=]{200,}/g) ?? [];
    expect(longest).toEqual([]);
  }
  return files;
}

function promptFile(message: Pick<Message, "content"> | undefined): unknown {
  return filesOf(message as Message)[0];
}

describe("inputs", () => {
  test("equal bytes are stored once, and the model gets them", async () => {
    const { agent, model } = await given(["One.", "Two."]);
    await agent.run([imageFile, { ...imageFile, filename: "again.png" }], s).text();
    await expectReferences(agent, 2);
    expect(await agent.listContent("s")).toHaveLength(1);
    const [sent] = filesOf(model.calls[0]!.prompt[0] as Message);
    expect(sent).toMatchObject({ mediaType: "image/png", data: { type: "data", data: image } });
  });

  test("the AI SDK's image part is a file", async () => {
    const { agent } = await given(["One."]);
    await agent.run([{ type: "image", image: base64(image) } as never], s).text();
    const [file] = await expectReferences(agent, 1);
    expect(file).toEqual({ type: "file", mediaType: "image/png", data: file!.data });
  });

  test("what a hook puts into the input is stored, too", async () => {
    const attach: Middleware = {
      name: "attach",
      beforeTurn(context) {
        context.input = [{ role: "user", content: [{ type: "text", text: "With a file." }, imageFile as never] }];
      },
    };
    const { agent } = await given(["One."], { middleware: [attach] });
    await agent.run("Nothing.", s).text();
    await expectReferences(agent, 1);
  });

  test("files in messages of a conversation from elsewhere", async () => {
    const { agent } = await given(["One."]);
    await agent
      .run(
        [
          { role: "user", content: [imageFile] },
          {
            role: "assistant",
            content: [
              { type: "text", text: "A tree." },
              { ...imageFile, data: other },
            ],
          },
          { role: "user", content: "And now?" },
        ],
        s,
      )
      .text();
    await expectReferences(agent, 2);
  });

  test("a stateless run takes files", async () => {
    const { agent, model } = await given(["One."]);
    await agent.run([imageFile]).text();
    expect(promptFile(model.calls[0]!.prompt[0])).toMatchObject({ data: { type: "data", data: image } });
  });

  test.each([
    ["no bytes", new Uint8Array()],
    ["no base64", "no base64 at all!"],
    ["a broken data URL", "data:image/png;base64,@@@"],
    ["a number", 7],
    ["nothing", undefined],
    ["an address of a disk", "file:///etc/passwd"],
    ["half a reference", "bough-content://sha256/abc"],
    ["a reference of another kind", { type: "url", url: `bough-content://md5/${"0".repeat(64)}` }],
  ])("%s is refused, and no turn begins", async (_, data) => {
    const { agent, model } = await given(["One."]);
    await refused(agent.run([{ type: "file", mediaType: "image/png", data } as never], s).result, "invalid_argument");
    expect(model.calls).toHaveLength(0);
    expect((await agent.loadBranch("s")).uncommittedTurn).toBeUndefined();
  });

  test("a reference to content that the branch can't see is refused", async () => {
    const { agent } = await given(["One."]);
    await agent.createSession("elsewhere");
    const { uri } = await agent.putContent("elsewhere", { bytes: image, mediaType: "image/png" });
    const file = { type: "file", mediaType: "image/png", data: { type: "url", url: uri } } as const;
    await refused(agent.run([file], s).result, "content_not_found");
    const sibling = await agent.forkBranch("s", { newBranchId: "sibling" });
    await agent.putContent({ sessionId: "s", branchId: sibling.id }, { bytes: image, mediaType: "image/png" });
    await refused(agent.run([file], main).result, "content_not_found");
  });
});

describe("tools", () => {
  const returning = (value: unknown) =>
    defineTool({
      description: "Returns files.",
      input: z.object({}),
      execute: () => value,
      toOutput: (output) => output as never,
    });
  const calling = [{ calls: [{ name: "give", input: {} }] }, "Done."];

  test.each<[string, unknown]>([
    ["bytes", { type: "file", mediaType: "image/png", data: image }],
    ["a stream", { type: "file", mediaType: "image/png", data: new Blob([image.slice()]).stream() }],
    ["the AI SDK's media", { type: "media", mediaType: "image/png", data: base64(image) }],
    ["the AI SDK's image-data", { type: "image-data", mediaType: "image/png", data: base64(image) }],
    ["the AI SDK's file-data", { type: "file-data", mediaType: "image/png", filename: "a.png", data: base64(image) }],
  ])("%s in a result", async (_, item) => {
    const { agent } = await given(calling, { tools: { give: returning({ type: "content", value: [item] }) } });
    await agent.run("Give.", s).text();
    await expectReferences(agent, 1);
  });

  test("a file larger than a fact can be", async () => {
    const large = bigPng(9_000_000);
    const item = { type: "file", mediaType: "image/png", data: large };
    const { agent, model } = await given(calling, {
      tools: { give: returning({ type: "content", value: [item] }) },
      content: { inline: { perFile: 10_000_000 } },
    });
    await agent.run("Give.", s).text();
    await expectReferences(agent, 1);
    const sent = promptFile(model.calls[1]!.prompt.at(-1)) as { data: { data: Uint8Array } };
    // Comparing byte by byte, as a matcher does, would take minutes.
    expect(Buffer.from(sent.data.data).equals(large)).toBe(true);
  });

  test("what a hook returns in place of a result", async () => {
    const swap: Middleware = {
      name: "swap",
      afterToolCall: async () => ({ type: "content", value: [imageFile as never] }),
    };
    const { agent } = await given(calling, { tools: { give: returning("nothing") }, middleware: [swap] });
    await agent.run("Give.", s).text();
    await expectReferences(agent, 1);
  });

  test("a file with nothing in it is an error that the model reads", async () => {
    const item = { type: "file", mediaType: "image/png", data: new Uint8Array() };
    const { agent } = await given(calling, { tools: { give: returning({ type: "content", value: [item] }) } });
    const { messages } = await agent.run("Give.", s).result;
    expect(JSON.stringify(messages[2])).toContain("A file has no bytes.");
  });

  test("a client's answer", async () => {
    const look = defineTool({ description: "Looks.", input: z.object({}) });
    const { agent } = await given([{ calls: [{ name: "look", input: {} }] }, "Done."], { tools: { look } });
    const run = agent.run("Look.", s);
    await eventsOf(run, async (event) => {
      if (event.type !== "interaction.opened") return;
      const output = { type: "content", value: [{ type: "file", mediaType: "image/png", data: base64(image) }] };
      await run.respond(event.id, { output });
    });
    await expectReferences(agent, 1);
  });

  test("a client's answer that refers to what the branch can't see is refused, and the question stays open", async () => {
    const look = defineTool({ description: "Looks.", input: z.object({}) });
    const { agent } = await given([{ calls: [{ name: "look", input: {} }] }, "Done."], { tools: { look } });
    const run = agent.run("Look.", s);
    const url = `bough-content://sha256/${"a".repeat(64)}`;
    const file = { type: "file", mediaType: "image/png", data: { type: "url", url } };
    await eventsOf(run, async (event) => {
      if (event.type !== "interaction.opened") return;
      await refused(run.respond(event.id, { output: { type: "content", value: [file] } }), "content_not_found");
      await run.respond(event.id, { output: "It was dark." });
    });
    expect((await run.result).status).toBe("completed");
  });
});

describe("models", () => {
  test("a picture that a model makes is a reference, and goes back to it", async () => {
    const { agent, model } = await given([{ text: "Here.", files: [{ mediaType: "image/png", data: image }] }, "Yes."]);
    await agent.run("Draw.", s).text();
    const [file] = await expectReferences(agent, 1);
    expect(file!.mediaType).toBe("image/png");
    await agent.run("Is it green?", s).text();
    expect(promptFile(model.calls[1]!.prompt[1])).toMatchObject({ data: { type: "data", data: image } });
  });

  test("what a hook answers in the model's place", async () => {
    const draw: Middleware = { name: "draw", beforeIteration: async (context) => context.answer([imageFile as never]) };
    const { agent } = await given([], { middleware: [draw] });
    await agent.run("Draw.", s).text();
    await expectReferences(agent, 1);
  });
});

describe("what can't be read", () => {
  test("is told once, a note is sent, and the turn completes", async () => {
    const { agent, model } = await given(["One.", "Two."]);
    await agent.run([imageFile], s).text();
    const id = (await agent.listContent("s"))[0]!.id;
    await agent.deleteContent("s", id);
    const events = await eventsOf(agent.run("And now?", s));
    expect(ofType(events, "content-fail")).toMatchObject([{ contentId: id, error: { code: "content_not_found" } }]);
    expect(JSON.stringify(model.calls[1]!.prompt)).toContain("[image image/png: no longer available]");
  });
});

test("prompts of any turn never have the internal scheme, and begin with those before", async () => {
  const show = defineTool({
    description: "Shows.",
    input: z.object({}),
    execute: () => ({ type: "content", value: [{ ...imageFile, data: other }] }),
    toOutput: (output) => output as never,
  });
  const script = [
    { calls: [{ name: "show", input: {} }] },
    "A.",
    { text: "B", files: [{ mediaType: "image/png", data: image }] },
    "C.",
  ];
  const { agent, model } = await given(script, { tools: { show } });
  await agent
    .run(
      [
        { type: "text", text: "One" },
        { type: "file", mediaType: "text/csv", data: utf8("a,b\n1,2\n") },
      ],
      s,
    )
    .text();
  await agent.run([{ type: "text", text: "Two" }, imageFile], s).text();
  await agent.run("Three", s).text();
  const prompts = model.calls.map(({ prompt }) => prompt.map((message) => JSON.stringify(message)));
  for (const prompt of prompts) expect(prompt.join()).not.toContain("bough-content");
  for (const [i, prompt] of prompts.slice(1).entries()) {
    expect(prompt.slice(0, prompts[i]!.length)).toEqual(prompts[i]);
  }
});
