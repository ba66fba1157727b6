import fc from "fast-check";
import { expect, test } from "vitest";
import { textDigest } from "../base/sha256.ts";
import type { Message } from "../events/index.ts";
import type { PromptMessage } from "./port.ts";
import { newPreparing, prepareHistory } from "./prepared-history.ts";
import { originOf, toPrompt } from "./prompt.ts";
import { factsOf } from "./specification.ts";

let made = 0;

function say(content: Message["content"], more: Partial<Message> = {}): Message {
  made++;
  return { id: `m${made}`, role: "user", content, createdAt: 0, turnId: "t", ...more };
}

/** Says how many messages were prepared and hashed since it was asked last. */
function counting() {
  const counts = { prepared: 0, hashed: 0 };
  const preparing = newPreparing(
    (message, into) => {
      counts.prepared++;
      into.push(message);
    },
    (before, { content }) => {
      counts.hashed++;
      return textDigest(before + JSON.stringify(content));
    },
  );
  const work = (history: readonly Message[]) => {
    Object.assign(counts, { prepared: 0, hashed: 0 });
    const prepared = prepareHistory(history, preparing);
    prepared.hash(prepared.length);
    return { ...counts };
  };
  return { preparing, work };
}

test("of a hundred forks none prepares or hashes what its parent did (PreparedHistory-1)", () => {
  const { work } = counting();
  const parent = Array.from({ length: 1000 }, (_, i) => say(`${i}`));
  expect(work(parent)).toEqual({ prepared: 1000, hashed: 1000 });
  for (let i = 0; i < 100; i++) {
    const fork = parent.slice(0, 1000 - i);
    expect(work(fork)).toEqual({ prepared: 0, hashed: 0 });
    fork.push(say("A task."), say("An answer."));
    expect(work(fork)).toEqual({ prepared: 2, hashed: 2 });
    expect(work(fork.slice())).toEqual({ prepared: 0, hashed: 0 });
  }
  parent.push(say("More."));
  expect(work(parent)).toEqual({ prepared: 1, hashed: 1 });
});

test("messages that another array has behind other ones are prepared anew (PreparedHistory-2)", () => {
  const { work } = counting();
  const [first, second, third] = [say("1"), say("2"), say("3")];
  work([first, second, third]);
  expect(work([say("A summary."), second, third])).toEqual({ prepared: 3, hashed: 3 });
});

test("a fork's pieces point at its parent's", () => {
  const { preparing } = counting();
  const parent = [say("1"), say("2")];
  const [of] = prepareHistory(parent, preparing).pieces;
  expect(prepareHistory(parent.slice(), preparing).pieces[0]).toBe(of);
  expect(prepareHistory(parent.slice().slice(), preparing).pieces[0]).toBe(of);
});

const contents = fc.constantFrom<() => Message>(
  () => say("text"),
  () => say(""),
  () => say([{ type: "text", text: "marked", providerOptions: { anthropic: { cacheControl: {} } } }]),
  () => say([{ type: "reasoning", text: "hm" }], { role: "assistant" }),
  () =>
    say(
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "so", providerOptions: { openai: { itemId: "x" } } },
      ],
      {
        role: "assistant",
      },
    ),
  () => say([{ type: "tool-call", toolCallId: "c", toolName: "t", input: "odd" }], { role: "assistant" }),
  () =>
    say([{ type: "tool-result", toolCallId: "c", toolName: "t", output: { type: "text", value: "1" } }], {
      role: "tool",
    }),
  () =>
    say([{ type: "file", mediaType: "image/png", data: { type: "url", url: "https://example.com/a.png" } }] as never),
);

const steps = fc.array(
  fc.record({
    /** Which branch, and whether it is forked and where before it goes on. */
    branch: fc.nat(5),
    fork: fc.option(fc.nat(12), { nil: undefined }),
    add: fc.array(contents, { maxLength: 3 }),
    reasoning: fc.constantFrom("turn" as const, "all" as const),
    hashes: fc.boolean(),
  }),
  { minLength: 1, maxLength: 16 },
);

/** Everything that is known of a prompt of these messages. */
function tell(history: readonly Message[], reasoning: "turn" | "all", hashes: boolean) {
  const prompt: PromptMessage[] = toPrompt({ history, turn: [], reasoning });
  return { prompt, facts: factsOf(prompt), hash: hashes ? originOf(prompt)!.hash() : undefined };
}

test("whatever branches share, each prompt is what the messages alone would give", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const branches: Message[][] = [[]];
      for (const { branch, fork, add, reasoning, hashes } of all) {
        let history = branches[branch % branches.length]!;
        if (fork !== undefined) {
          history = history.slice(0, fork);
          branches.push(history);
        }
        history.push(...add.map((make) => make()));
        const earlier = tell(history, reasoning, false);
        const later = originOf(earlier.prompt)!;
        expect(tell(history, reasoning, hashes)).toEqual(tell(structuredClone(history), reasoning, hashes));
        if (hashes) expect(later.hash()).toBe(tell(structuredClone(history), reasoning, true).hash);
      }
    }),
  );
});
