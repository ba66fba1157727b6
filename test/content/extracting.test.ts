// Texts of documents: extracted in a thread of the built package, once for the bytes of a session.

import { describe, expect, test } from "vitest";
import { type DocumentType, documentTypes } from "../../src/content/extract/types.ts";
import { extractInWorker } from "../../src/content/index.ts";
import { readFileTool } from "../../src/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { eventsOf, given, main, ofType, refused, s } from "../agent/kit.ts";
import { docx, odt, pdf, pptx, utf8, xlsx, zip } from "./files.ts";

const read = (bytes: Uint8Array, type: DocumentType) => extractInWorker(bytes, type, manualClock());

test.each<[string, DocumentType, Uint8Array, string]>([
  [
    "a PDF",
    documentTypes.pdf,
    pdf("Oaks are old.", "Birches are not."),
    "Page 1\nOaks are old.\n\nPage 2\nBirches are not.",
  ],
  ["a Word document", documentTypes.docx, docx("Oak &amp; ash", "Beech"), "Oak & ash\nBeech"],
  ["slides", documentTypes.pptx, pptx("Roots", "Leaves"), "Slide 1\nRoots\n\nSlide 2\nLeaves"],
  [
    "a table",
    documentTypes.xlsx,
    xlsx([
      ["Tree", "Age"],
      ["Oak", 300],
    ]),
    "Trees\nTree\tAge\nOak\t300",
  ],
  ["an OpenDocument text", documentTypes.odt, odt("Oak", "Ash"), "Oak\nAsh"],
  [
    "a page",
    documentTypes.html,
    utf8(
      "<html><head><title>x</title></head><script>alert(1)</script><h1>Trees</h1><ul><li>Oak<li>Ash</ul><p>a&nbsp;&lt;b&#33;<!-- no -->",
    ),
    "Trees\n\n- Oak\n- Ash\n\na <b!",
  ],
])("the text of %s", async (_, type, bytes, text) => {
  expect(await read(bytes, type)).toBe(text);
});

describe("hostile files", () => {
  const big = "<w:t>".repeat(1_000_000);
  test.each<[string, DocumentType, Uint8Array, RegExp]>([
    [
      "an archive that unpacks to far more",
      documentTypes.docx,
      zip({ "word/document.xml": big }),
      /100 times its size/,
    ],
    [
      "an archive that claims less than it holds",
      documentTypes.docx,
      zip({ "word/document.xml": big }, { size: 10 }),
      /more than it claims/,
    ],
    [
      "an archive that claims gigabytes",
      documentTypes.docx,
      zip({ a: "x" }, { size: 4_000_000_000 }),
      /more than 100000000 bytes/,
    ],
    ["an archive of too many files", documentTypes.xlsx, zip({ a: "x" }, { copies: 1_001 }), /more than 1000 files/],
    ["no archive", documentTypes.odt, utf8("hello"), /not an archive/],
    ["half an archive", documentTypes.pptx, pptx("a").subarray(0, 60), /not an archive/],
    ["no PDF", documentTypes.pdf, utf8("%PDF-1.7 and no more"), /./],
  ])("%s", async (_, type, bytes, problem) => {
    const error = await refused(read(bytes, type), "limit_exceeded");
    expect(error.message).toMatch(problem);
  });

  test("a file that takes too long is given up, and its thread with it", async () => {
    const clock = manualClock();
    // Nested so deep that reading it takes longer than the test waits.
    const endless = pdf(...Array.from({ length: 400 }, (_, i) => `${i} ${"word ".repeat(20_000)}`));
    const reading = extractInWorker(endless, documentTypes.pdf, clock);
    clock.advance(30_000);
    const error = await refused(reading, "limit_exceeded");
    expect(error.message).toBe("Reading the text took longer than 30 s.");
  });
});

describe("a document that the model doesn't take", () => {
  const file = {
    type: "file",
    mediaType: documentTypes.docx,
    filename: "trees.docx",
    data: docx("Oak", "Ash"),
  } as const;
  const asOpenAI = { content: { accepts: ["image/*"] } };

  test("is sent as text, which is stored once and found by another process", async () => {
    const { agent, model, again } = await given(["One."], asOpenAI);
    await agent.run([file], s).text();
    const quoted = `<file name="trees.docx" type="${documentTypes.docx}">\nOak\nAsh\n</file>`;
    expect(model.calls[0]!.prompt[0]!.content).toEqual([{ type: "text", text: quoted }]);
    const stored = await agent.listContent("s");
    const [source, text] = [stored.find(({ of }) => of === undefined), stored.find(({ of }) => of !== undefined)];
    expect(text).toMatchObject({ origin: "derived", of: source!.id, mediaType: "text/plain" });
    expect(source!.texts).toEqual({ [documentTypes.docx]: text!.id });
    // What is found is what is stored: changed here, to see that nothing is extracted again.
    const other = await agent.putContent("s", { bytes: utf8("Elm"), mediaType: "text/plain", origin: "derived" });
    await agent.updateContent("s", source!.id, { texts: { [documentTypes.docx]: other.id } });
    const restarted = again({ script: ["Two."] });
    const run = restarted.run("And?", s);
    await run.text();
    expect(await restarted.listContent("s")).toHaveLength(3);
  });

  test("a long one is cut, and read_file reads on", async () => {
    const words = Array.from({ length: 400 }, (_, i) => `word${i}`).join(" ");
    const { agent, model } = await given(
      (prompt) => {
        const cut = /read_file\(\{ id: "([0-9a-f]+)", from: (\d+) \}\)/.exec(
          JSON.stringify(prompt).replaceAll('\\"', '"'),
        );
        if (prompt.at(-1)!.role === "tool") return "Read.";
        return {
          calls: [{ name: "read_file", input: { id: cut![1]!, from: Number(cut![2]), to: Number(cut![2]) + 10 } }],
        };
      },
      { content: { accepts: [], textLength: 100 }, tools: { read_file: readFileTool() } },
    );
    await agent.run([{ ...file, data: docx(words) }], s).text();
    const [part] = model.calls[0]!.prompt[0]!.content as unknown as [{ text: string }];
    expect(part.text).toContain(`${words.slice(0, 100)}\n[… ${words.length - 100} more characters; read_file(`);
    const result = JSON.stringify(model.calls[1]!.prompt.at(-1));
    expect(result).toContain(
      JSON.stringify({ text: words.slice(100, 110), from: 100, to: 110, length: words.length }).slice(1, -1),
    );
  });

  test("that can't be read is a note, and told", async () => {
    const { agent, model } = await given(["One."], asOpenAI);
    const events = await eventsOf(agent.run([{ ...file, data: utf8("no document") }], s));
    expect(ofType(events, "content-fail")).toMatchObject([{ error: { message: "The file is not an archive." } }]);
    expect(JSON.stringify(model.calls[0]!.prompt)).toContain("not sent (its text can't be read)");
  });
});

test("read_file reads nothing that the branch doesn't see", async () => {
  const { agent } = await given([{ calls: [{ name: "read_file", input: { id: "a".repeat(64) } }] }, "No."], {
    tools: { read_file: readFileTool() },
  });
  const { messages } = await agent.run("Read.", s).result;
  expect(JSON.stringify(messages[2])).toContain("error-text");
  expect(await agent.listContent(main)).toEqual([]);
});
