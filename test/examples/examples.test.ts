// Examples can't rot: each is run as a newcomer would run it, from the built package and without a key, and what it shows
// is looked at.

import { execFile, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

const folder = new URL("../../examples/", import.meta.url).pathname;
const run = promisify(execFile);

interface Example {
  /** The file to run (default: named like its folder). */
  readonly file?: string;
  /** What must be on the screen, in this order. */
  readonly shows: readonly (string | RegExp)[];
  /** What must not be. */
  readonly hides?: RegExp;
}

const examples: Record<string, Example> = {
  hello: {
    shows: ["Hello!", /2 messages at position \d+ of the log: user, assistant/],
  },
  "multi-turn": {
    shows: [
      "You are Ada.",
      "(1 model call,",
      "About 45 metres",
      "(2 model calls,",
      "On file: user, assistant, user, assistant, user, assistant, tool, assistant",
    ],
  },
  "durable-restart": {
    shows: [
      /(hotel|train): the result is in the log, at position 5/,
      /(hotel|train): the result is in the log, at position 6/,
      "killed with SIGKILL",
      /turn \S+ is taken up/,
      "table: booked now",
      "Have a good trip!",
      /^Booked in all: (hotel, train|train, hotel), table$/m,
    ],
    hides: /(hotel|train): booked now/,
  },
  router: {
    shows: [
      "(router hands over to billing)\nbilling: You owe 17 euros.",
      "you: Since when?\nbilling: Since the first of May.",
      "(billing hands over to router)\nrouter: It rains.",
      "3 turns",
    ],
  },
  "background-review": {
    shows: [
      "author: The review has begun; I go on with chapter 2.",
      "killed with SIGKILL",
      "review is running without a process",
      "the review has ended: completed",
      'author: The review is here, and "very very" is gone.',
      "Tasks left: 0",
    ],
  },
  researcher: {
    shows: [
      "writer > photographer asks: Which season?",
      "killed with SIGKILL",
      "waiting on main: Which season?",
      "writer > photographer goes on",
      "picture has its result: A picture in autumn.",
      "The article is done",
      /branch sub-botanist-[0-9a-f]{16} \(botanist\)/,
      /^Looked up in all: Oaks$/m,
    ],
    hides: /botanist goes on/,
  },
  "picture-and-voice": {
    shows: [
      /Picture: A image\/png of \d+ bytes\./,
      "Voice: I have written it down.",
      "Heard: Write a note: the tree is green. (2 s)",
      "In the log: bough-content://sha256/",
      /On main: note\.md \(\d+ bytes\), tree\.png \(\d+ bytes\)$/m,
      /On after-the-note: note\.md \(\d+ bytes\), tree\.png/,
      /On before-the-note: tree\.png \(\d+ bytes\)$/m,
    ],
  },
  "parallel-review": {
    shows: [
      "start -> style",
      "start -> law",
      "editor -> rewrite (ok is false)",
      "rewrite -> style",
      "editor#2 is recorded",
      "editor -> end (otherwise)",
      "Result: { ok: true, why: 'Toned down.' }",
      "branch workflow-agent-case-7-style: node style, agent stylist",
      '-.->|"at most 2 times"|',
    ],
  },
  "graph-router": {
    shows: [
      "Where is my refund?  start -> desk, desk -> billing, billing -> end",
      "Your refund is on its way.",
      "My printer is on fire.  start -> desk, desk -> tech, tech -> end",
    ],
  },
  overnight: {
    shows: [
      "17:00  draft: ",
      "17:00  parked: a person has to say yes",
      "19:00  approved; parked until the morning",
      "2030-05-07 00:00  asleep",
      "2030-05-07 08:00  sent, once",
      "the execution is committed",
    ],
    hides: /(draft: |sent, once)[\s\S]*\1/,
  },
  "map-killed": {
    shows: [
      "12 results are in the log",
      "killed with SIGKILL",
      "counted now: 8\n",
      "the sum of all pages: 2100",
      "Counted in all: 20 pages; more than once: 0",
    ],
  },
  "long-chat": {
    shows: [
      "8 messages are shown to the model as one summary.",
      /lost {2}Which port[^\n]*\n +before: The database listens on port 8443\.\n +after: +The conversation does not say\./,
      "kept  Which table",
      "kept  Who is on call",
      "Score 0.67.",
      "taken back",
      "verified by its hash: true",
      "It begins with all of the prompt before it: true (100 %).",
    ],
  },
  "fork-and-compare": {
    shows: [
      /PRACTICAL +│ POETIC/,
      /peas and radishes.*│ Plant the slow tree/,
      /main +2 messages, the original/,
      /practical +4 messages, forked from main after message 2 +\[chosen\]/,
      /poetic +4 messages, forked from main after message 2/,
    ],
  },
  approval: {
    shows: [
      "notes.txt: allow?",
      "thesis.txt: allow?",
      "tmp/cache is gone; notes.txt is gone; denied (keep it)",
      "the run is parked; open questions: permission",
      "found: remove photos.zip",
      "photos.zip is gone",
    ],
    hides: /tmp\/cache: allow|thesis\.txt is gone/,
  },
  "checkpoint-and-time-travel": {
    shows: [
      "Fly on Wednesday, for 95 euros.",
      "after iteration 3",
      "after iteration 2",
      "after iteration 1",
      "these prices were known: 180, 140",
      "Fly on Tuesday, for 140 euros.",
      /main +8 messages/,
      /impatient +6 messages/,
    ],
  },
  "streaming-ui-loop": {
    shows: [
      "! Overloaded; trying again",
      "~ Two numbers are needed",
      "> download",
      "archive: the archive is busy; attempt 2 of 3",
      '< archive {"mean":10.1}',
      '< download {"days":31,"mean":11.4}',
      "? publish",
      "> publish",
      "It is online",
      "= completed",
    ],
  },
  "guided-tour": {
    file: "tour.mjs",
    shows: [
      "Three days in Lisbon",
      '"cheap" shares 2 messages with "main"',
      /the (hotel|train) has its result, durably/,
      "killed with SIGKILL",
      "2 of 3 results are there",
      "the table is booked now",
      "each once",
      "may cancel run for the table?",
      "allowed, by this tour",
      "The table is cancelled.",
      "14 messages",
      "undone: 12 messages again",
      /main +12 messages/,
      "└─ cheap  4 messages",
      "   └─ cheaper  3 messages",
      "0 problems found",
    ],
  },
};

/** No key, no colours, and a place for files that is looked at afterwards. */
async function environment(): Promise<NodeJS.ProcessEnv & { TMPDIR: string }> {
  const place = await mkdtemp(join(tmpdir(), "bough-examples-"));
  onTestFinished(() => rm(place, { recursive: true, force: true }));
  const { ANTHROPIC_API_KEY: _anthropic, OPENAI_API_KEY: _openai, FORCE_COLOR: _colour, ...rest } = process.env;
  return { ...rest, TMPDIR: place };
}

function fileOf(name: string): string {
  return join(folder, name, examples[name]?.file ?? `${name}.mjs`);
}

/** Shown in a browser, by test/react. */
const pages = ["react-chat"];

test("every example is run here or in a browser", () => {
  const folders = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
    .map(({ name }) => name);
  expect(folders.sort()).toEqual([...Object.keys(examples), ...pages].sort());
});

describe.each(Object.entries(examples))("%s", (name, { shows, hides }) => {
  test("runs without a key, shows what it promises, and leaves nothing behind", async () => {
    const env = await environment();

    // A failed exit rejects with what was on the screen.
    const { stdout, stderr } = await run(process.execPath, [fileOf(name)], { env });

    expect(stderr).toBe("");
    expect(stdout).toContain("a scripted stand-in");
    let rest = stdout;
    for (const shown of shows) {
      const at = typeof shown === "string" ? rest.indexOf(shown) : rest.search(shown);
      expect(at, `"${shown}" on the screen, after what came before it:\n${stdout}`).toBeGreaterThanOrEqual(0);
      rest = rest.slice(at);
    }
    if (hides) expect(stdout).not.toMatch(hides);
    // No terminal, so no colours; and one of 80 columns would break no line.
    expect(stdout).not.toContain("\u001B");
    expect(stdout.split("\n").filter((line) => [...line].length > 80)).toEqual([]);
    expect(await readdir(env.TMPDIR)).toEqual([]);
  });
});

describe("with a key", () => {
  const mock = new LLMock({ port: 0 });
  beforeAll(async () => {
    await mock.start();
    const isAsked = ({ messages }: { messages: { role: string }[] }) => messages.at(-1)?.role === "user";
    const calls = (name: string, ...things: string[]) => ({
      toolCalls: things.map((what) => ({ name, arguments: JSON.stringify({ what }) })),
    });
    mock.on({ userMessage: /Book a hotel/, predicate: isAsked }, calls("book", "hotel", "train", "table"));
    mock.on({ userMessage: /Cancel/, predicate: isAsked }, calls("cancel", "table"));
    mock.on({ predicate: () => true }, { content: "Said by a provider." });
  });
  afterAll(() => mock.stop());

  test.each(["anthropic", "openai"])("the tour talks to %s", async (provider) => {
    const name = provider.toUpperCase();
    const env = { ...(await environment()), [`${name}_API_KEY`]: "none", [`${name}_BASE_URL`]: `${mock.url}/v1` };

    const { stdout } = await run(process.execPath, [fileOf("guided-tour")], { env });

    expect(stdout).toContain(`Model: ${provider}/`);
    expect(stdout).toContain("Said by a provider.");
    expect(stdout).toContain("executed in all: hotel, train, table; each once");
    expect(stdout).toContain("undone: 12 messages again");
  });
});

test("a provider that fails is told of", async () => {
  const env = { ...(await environment()), OPENAI_API_KEY: "sk-none", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };

  const { stdout, stderr } = spawnSync(process.execPath, [fileOf("hello")], { env, encoding: "utf8" });

  expect(stdout).toContain("Model: openai/");
  expect(stderr).toContain("The model call failed");
});
