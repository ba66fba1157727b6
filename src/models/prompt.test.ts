import { describe, expect, test } from "vitest";
import type { Message, Part, Role } from "../events/index.ts";
import { toPrompt } from "./prompt.ts";

let count = 0;
function message(role: Role, content: string | Part[], more: Partial<Message> = {}): Message {
  count += 1;
  return { id: `m${count}`, role, content, createdAt: 0, turnId: "t", ...more };
}

const options = { openai: { itemId: "x" } };
const text = (said: string, more: object = {}): Part => ({ type: "text", text: said, ...more });
const reasoning: Part = { type: "reasoning", text: "hm", providerOptions: options };
const call = (input: unknown, more: object = {}): Part =>
  ({ type: "tool-call", toolCallId: "c", toolName: "t", input, ...more }) as Part;
const bare = (messages: readonly unknown[]) =>
  messages.map((message) => {
    const { role, content } = message as Message;
    return { role, content };
  });
const prompt = (history: Message[], turn: Message[] = [], more: object = {}) =>
  bare(toPrompt({ history, turn, reasoning: "turn", ...more }));

describe("toPrompt", () => {
  test("the instructions come first, then history and turn; a system message is text, every other is parts", () => {
    const made = prompt([message("system", [text("a"), text("b")]), message("user", "hi")], [message("user", "now")], {
      instructions: "Be kind.",
    });
    expect(made).toEqual([
      { role: "system", content: "Be kind." },
      { role: "system", content: "ab" },
      { role: "user", content: [text("hi")] },
      { role: "user", content: [text("now")] },
    ]);
  });

  test("a message that needs no change is passed on itself", () => {
    const user = message("user", [text("hi")]);
    const answer = message("assistant", [text("ho", { providerOptions: options }), call({ a: 1 })]);
    expect(toPrompt({ history: [user], turn: [answer], reasoning: "turn" })).toEqual([user, answer]);
    expect(toPrompt({ history: [user], turn: [answer], reasoning: "turn" })[1]).toBe(answer);
  });

  test("history loses its reasoning, and with it the provider's references and what the provider ran", () => {
    const answer = message("assistant", [
      reasoning,
      text("ho", { providerOptions: options }),
      call({ a: 1 }, { providerOptions: options }),
      call({ q: 1 }, { toolCallId: "p", providerExecuted: true }),
      { type: "tool-result", toolCallId: "p", toolName: "t", output: { type: "json", value: 1 } },
      { type: "custom", kind: "openai.compaction", providerOptions: options },
    ]);
    expect(prompt([answer])).toEqual([
      {
        role: "assistant",
        content: [text("ho"), call({ a: 1 }), { type: "custom", kind: "openai.compaction", providerOptions: options }],
      },
    ]);
  });

  test("the turn keeps its reasoning, and so does history when all is asked for", () => {
    const answer = message("assistant", [reasoning, text("ho", { providerOptions: options })]);
    expect(prompt([], [answer])).toEqual(bare([answer]));
    expect(prompt([answer], [], { reasoning: "all" })).toEqual(bare([answer]));
  });

  test("a message without reasoning keeps its references", () => {
    const answer = message("assistant", [text("ho", { providerOptions: options })]);
    expect(prompt([answer])).toEqual(bare([answer]));
  });

  test("a partial message loses what the provider never finished, wherever it stands", () => {
    const partial = message("assistant", [reasoning, text("ha", { providerOptions: options })], { partial: true });
    const expected = [{ role: "assistant", content: [text("ha")] }];
    expect(prompt([], [partial])).toEqual(expected);
    expect(prompt([partial], [], { reasoning: "all" })).toEqual(expected);
  });

  test("a message with nothing left is left out", () => {
    const gone = [
      message("assistant", [reasoning]),
      message("assistant", ""),
      message("user", []),
      message("system", ""),
    ];
    expect(prompt([...gone, message("user", "hi")])).toEqual([{ role: "user", content: [text("hi")] }]);
  });

  test.each(["no json", 5, null, [1]])("a call with the input %j goes out with an object", (input) => {
    const answer = message("assistant", [text("a"), call(input, { providerOptions: options })]);
    expect(prompt([], [answer])[0]?.content).toEqual([text("a"), call({}, { providerOptions: options })]);
    expect(prompt([answer])[0]?.content).toEqual([text("a"), call({}, { providerOptions: options })]);
    expect(answer.content[1]).toMatchObject({ input });
  });
});

describe("history that grows", () => {
  test("what is added in place is in the next prompt, and the earlier prompt stays as it was", () => {
    const history = [message("user", "one")];
    const first = toPrompt({ history, turn: [], reasoning: "turn" });
    history.push(message("assistant", [reasoning, text("two")]), message("user", "three"));
    const second = toPrompt({ history, turn: [], reasoning: "turn" });
    expect(bare(first)).toEqual([{ role: "user", content: [text("one")] }]);
    expect(bare(second).map(({ content }) => content)).toEqual([[text("one")], [text("two")], [text("three")]]);
  });

  test("each message is prepared once", () => {
    let reads = 0;
    const watched = message("assistant", []);
    Object.defineProperty(watched, "content", {
      get() {
        reads += 1;
        return [text("x")];
      },
    });
    const history = [watched];
    toPrompt({ history, turn: [], reasoning: "turn" });
    const once = reads;
    toPrompt({ history, turn: [], reasoning: "turn" });
    history.push(message("user", "more"));
    toPrompt({ history, turn: [], reasoning: "turn" });
    expect(reads).toBe(once);
  });

  test("the two ways to treat reasoning don't share what is prepared; a shorter history is prepared anew", () => {
    const history = [message("user", "one"), message("assistant", [reasoning, text("two")])];
    const contents = (kept: "turn" | "all") =>
      bare(toPrompt({ history, turn: [], reasoning: kept })).map((m) => m.content);
    expect(contents("turn")[1]).toEqual([text("two")]);
    expect(contents("all")[1]).toEqual([reasoning, text("two")]);
    expect(contents("turn")[1]).toEqual([text("two")]);
    history.pop();
    expect(contents("turn")).toEqual([[text("one")]]);
  });
});
