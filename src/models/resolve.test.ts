import { describe, expect, test } from "vitest";
import type { LanguageModel } from "./port.ts";
import { resolveModel } from "./resolve.ts";

const model = (specificationVersion: string) =>
  ({ specificationVersion, provider: "p", modelId: "m", doStream: async () => ({}) }) as unknown as LanguageModel;

describe("model objects", () => {
  test.each(["v3", "v4"])("one of specification %s is used as it is", async (version) => {
    const given = model(version);
    expect(await resolveModel(given)).toBe(given);
  });

  test.each([model("v2"), {}, null, undefined, 5])("%o is refused", async (given) => {
    await expect(resolveModel(given as LanguageModel)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/v3 or v4/),
    });
  });
});

describe("model names", () => {
  test("the provider's package is loaded, and the model id is all behind the first slash", async () => {
    expect(await resolveModel("openai/gpt-5")).toMatchObject({ provider: "openai.responses", modelId: "gpt-5" });
    expect(await resolveModel("anthropic/a/b/c")).toMatchObject({ provider: "anthropic.messages", modelId: "a/b/c" });
  });

  test("one name is one model object", async () => {
    const [first, second] = await Promise.all([resolveModel("openai/gpt-x"), resolveModel("openai/gpt-x")]);
    expect(second).toBe(first);
    expect(await resolveModel("openai/gpt-x")).toBe(first);
    expect(await resolveModel("openai/gpt-y")).not.toBe(first);
  });

  test("names without end are not all remembered, and the newest are", async () => {
    const oldest = await resolveModel("openai/first-of-many");
    for (let i = 0; i < 400; i++) await resolveModel(`openai/many-${i}`);
    expect(await resolveModel("openai/many-399")).toBe(await resolveModel("openai/many-399"));
    expect(await resolveModel("openai/first-of-many")).not.toBe(oldest);
  });

  test("a package that is not installed is named with what to do, each time", async () => {
    const failures = [];
    for (const _ of [1, 2]) failures.push(await resolveModel("mistral/large").catch((error) => error));
    for (const failure of failures) {
      expect(failure).toMatchObject({
        code: "dependency_missing",
        message: expect.stringContaining("npm install @ai-sdk/mistral"),
        data: { model: "mistral/large", package: "@ai-sdk/mistral" },
      });
    }
    expect(failures[1]).not.toBe(failures[0]);
  });

  test.each(["nobody/x", "constructor/x", "__proto__/x"])(
    "the unknown provider of %s is refused with those there are",
    async (name) => {
      await expect(resolveModel(name)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringMatching(/Unknown provider .*anthropic.*ollama.*openai/s),
      });
    },
  );

  test.each(["gpt-5", "", "/x", "openai/"])("%j is no name of a model", async (name) => {
    await expect(resolveModel(name)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining('"provider/model"'),
    });
  });
});
