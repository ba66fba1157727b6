// Files: a picture and a recording that this script makes itself. The picture reaches the model, the recording becomes text beside
// what was typed, and a tool makes a file that a fork inherits. The log has references, and no bytes.

import { deflateSync } from "node:zlib";
import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";

console.log(aboutModel);

/** A picture of one colour, in PNG. */
function makePicture(width, height, colour) {
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from(colour))]);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const data = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name), data]);
  const frame = Buffer.alloc(body.length + 8);
  frame.writeUInt32BE(data.length, 0);
  body.copy(frame, 4);
  frame.writeInt32BE(checksum(body), body.length + 4);
  return frame;
}

function checksum(bytes) {
  let value = ~0;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return ~value;
}

/** A tone, in WAV: 8,000 samples a second. */
function makeRecording(seconds, hertz) {
  const samples = Int16Array.from(
    { length: 8000 * seconds },
    (_, i) => 12_000 * Math.sin((2 * Math.PI * hertz * i) / 8000),
  );
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.set([1, 0, 1, 0], 20);
  head.writeUInt32LE(8000, 24);
  head.writeUInt32LE(16_000, 28);
  head.set([2, 0, 16, 0], 32);
  head.write("data", 36);
  head.writeUInt32LE(samples.byteLength, 40);
  return Buffer.concat([head, Buffer.from(samples.buffer)]);
}

const note = defineTool({
  description: "Writes a note into a file.",
  input: z.object({ text: z.string() }),
  async execute({ text }, { attach }) {
    const { name, size } = await attach({ name: "note.md", bytes: Buffer.from(`# Note\n\n${text}\n`) });
    return `${name}, ${size} bytes`;
  },
});

const filesIn = (prompt) => prompt.flatMap(({ content }) => content.filter?.(({ type }) => type === "file") ?? []);

const agent = createAgent({
  model: modelFor((prompt) => {
    if (prompt.at(-1).role === "tool") return "I have written it down.";
    const [picture] = filesIn(prompt);
    const said = prompt
      .at(-1)
      .content.map(({ text }) => text ?? "")
      .join(" ");
    if (said.includes("note")) return { calls: [{ name: "note", input: { text: said } }] };
    return `A ${picture.mediaType} of ${picture.data.data.length} bytes.`;
  }),
  instructions: "Answer in one sentence. When asked for a note, use the tool note.",
  tools: { note },
  // In place of openai.transcription("whisper-1"): this one only measures how long the tone is.
  audio: {
    transcribe: ({ bytes }) => ({
      text: `Write a note: the tree is green. (${(bytes.length - 44) / 16_000} s)`,
      language: "en",
    }),
  },
});

await agent.createSession("files");
const picture = { type: "file", filename: "tree.png", data: makePicture(32, 32, [30, 120, 60]) };
console.log("Picture:", await agent.run([{ type: "text", text: "What is this?" }, picture], "files").text());

const before = await agent.forkBranch("files", { newBranchId: "before-the-note" });
const main = { sessionId: "files", branchId: "main" };
const recording = { type: "file", filename: "memo.wav", data: makeRecording(2, 440) };
console.log("Voice:", await agent.run([{ type: "text", text: "From my phone:" }, recording], main).text());

const { messages } = await agent.loadBranch(main);
const spoken = messages.findLast(({ role }) => role === "user").content.at(-1);
console.log("Heard:", spoken.text);
const { messages: shown } = await agent.loadBranch(main);
console.log("In the log:", shown[0].content.at(-1).data.url.slice(0, 34));

const after = await agent.forkBranch(main, { newBranchId: "after-the-note" });
for (const { id } of [{ id: "main" }, after, before]) {
  const files = await agent.listContent({ sessionId: "files", branchId: id });
  console.log(
    `On ${id}:`,
    files
      .map(({ name, size }) => `${name} (${size} bytes)`)
      .sort()
      .join(", "),
  );
}
await agent.close();
