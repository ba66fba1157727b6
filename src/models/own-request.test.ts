import { expect, test } from "vitest";
import { freezeJson } from "../base/json.ts";
import { ownRequest, requestToSend } from "./own-request.ts";
import type { ModelRequest } from "./port.ts";

const model = { specificationVersion: "v4", provider: "test", modelId: "test", doStream: () => {} } as never;

function source(): ModelRequest {
  const prompt = freezeJson([{ role: "user", content: [{ type: "text", text: "Hi" }] }] as const);
  const tools = [{ type: "function", name: "add", inputSchema: { type: "object" } }] as const;
  return { model, prompt, tools, settings: { headers: { a: "1" } }, toolChoice: "auto" };
}

test("nobody pays for a prompt that nobody looks at: what is sent is the source's own", () => {
  const given = source();
  const own = ownRequest(given);
  (own.settings as { temperature: number }).temperature = 1;
  const sent = requestToSend(own);
  expect(sent.prompt).toBe(given.prompt);
  expect(sent.tools).toBe(given.tools);
  expect(sent).toMatchObject({ model, toolChoice: "auto", settings: { temperature: 1, headers: { a: "1" } } });
  expect(given.settings).toEqual({ headers: { a: "1" } });
});

test("what is looked at can be changed in place, and is what is sent", () => {
  const given = source();
  const own = ownRequest(given);
  const message = own.prompt[0] as unknown as { content: { text: string }[]; providerOptions?: object };
  message.content[0]!.text = "Bye";
  message.providerOptions = { mark: {} };
  (own.tools[0] as { name: string }).name = "subtract";
  expect(requestToSend(own).prompt).toEqual([
    { role: "user", content: [{ type: "text", text: "Bye" }], providerOptions: { mark: {} } },
  ]);
  expect(requestToSend(own).tools).toMatchObject([{ name: "subtract" }]);
  expect(given).toEqual(source());
});

test("it can be spread, and its parts replaced", () => {
  const own = ownRequest(source());
  const spread = { ...own, settings: {} };
  expect(spread).toEqual({ ...source(), settings: {} });
  expect(requestToSend(spread)).toBe(spread);
  (own as { prompt: unknown }).prompt = [];
  expect(requestToSend(own).prompt).toEqual([]);
});
