import { describe, expect, test } from "vitest";
import { checkOptions, checkSpelling, number, object, oneOf, optionKeys, optionTable, text } from "./options.ts";

interface Options {
  readonly name?: string;
  readonly size?: number;
  readonly kind?: "a" | "b";
  readonly settings?: object;
}
const table = optionTable<Options>({ name: text, size: number, kind: oneOf("a", "b"), settings: object });
const check = (given: unknown) => () => checkOptions("A box's options", given, table, "box.");

describe("options", () => {
  test("that fit are taken, and keys without a value", () => {
    expect(check({ name: "x", size: 1, kind: "a", settings: {} })).not.toThrow();
    expect(check({ name: undefined, other: undefined })).not.toThrow();
    expect(check({})).not.toThrow();
  });

  test.each([
    [{ size: "1" }, "box.size must be a number."],
    [{ size: Number.NaN }, "box.size must be a number."],
    [{ kind: "c" }, 'box.kind must be one of "a", "b".'],
    [{ settings: [] }, "box.settings must be an object."],
    [{ name: null }, "box.name must be a string."],
    [{ setings: {} }, 'A box\'s options may not have the key "box.setings". Did you mean "settings"?'],
    [{ NAME: "x" }, 'Did you mean "name"?'],
    [{ colour: 1 }, "Known keys: name, size, kind, settings."],
    [[], "A box's options must be an object."],
    ["x", "A box's options must be an object."],
    [null, "A box's options must be an object."],
  ])("%j are refused", (given, sentence) => {
    expect(check(given)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(sentence) }),
    );
  });

  test("in a larger object are refused only when they are misspelt", () => {
    const keys = optionKeys<{ sessionId: string; branchId?: string }>({ sessionId: true, branchId: true });
    const larger = { sessionId: "s", turnId: "t", runs: [], branch: {} };
    expect(() => checkSpelling("A scope", larger, keys)).not.toThrow();
    for (const key of ["sessionID", "session_id", "sesionId", "branchid", "branch-id"]) {
      expect(() => checkSpelling("A scope", { [key]: "x" }, keys), key).toThrow("Did you mean");
    }
  });
});
