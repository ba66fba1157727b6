import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import type { StateHandle } from "../tools/index.ts";
import { defineState } from "./state.ts";

describe("defineState", () => {
  test("the type of the value comes from the initial value", () => {
    expectTypeOf(defineState({ key: "n", scope: "run", initial: 0 })).toEqualTypeOf<StateHandle<number>>();
    const counts = defineState({ key: "c", scope: "run", initial: { seen: 0, names: ["a"] } });
    expectTypeOf(counts).toEqualTypeOf<StateHandle<{ seen: number; names: string[] }>>();
  });

  test("the type of the value comes from the schema", () => {
    const schema = z.object({ mode: z.enum(["slow", "fast"]) });
    const handle = defineState({ key: "m", scope: "branch", initial: { mode: "slow" }, schema });
    expectTypeOf(handle).toEqualTypeOf<StateHandle<{ mode: "slow" | "fast" }>>();
  });

  test("a type may be named", () => {
    const choice = defineState<"allow" | "deny">({ key: "c", scope: "run", initial: "allow" });
    expectTypeOf(choice).toEqualTypeOf<StateHandle<"allow" | "deny">>();
  });

  test("a value that does not fit the schema is refused, with the schema's words", () => {
    const handle = defineState({ key: "n", scope: "branch", initial: 1, schema: z.number().min(1, "too small") });
    expect(handle.parse?.(2)).toBe(2);
    expect(() => handle.parse?.(0)).toThrow(/"n": too small/);
  });

  test("what the schema adds is part of the initial value", () => {
    const schema = z.object({ list: z.array(z.string()).default([]) });
    expect(defineState({ key: "d", scope: "run", initial: {} as { list: string[] }, schema }).initial).toEqual({
      list: [],
    });
  });

  test.each([
    ["an empty key", { key: "", scope: "run", initial: 0 }],
    ["version 0", { key: "k", scope: "run", initial: 0, version: 0 }],
    ["a broken version", { key: "k", scope: "run", initial: 0, version: 1.5 }],
    ["an initial value that is no JSON", { key: "k", scope: "run", initial: new Date(0) }],
    ["an initial value that does not fit", { key: "k", scope: "run", initial: 0, schema: z.string() }],
    ["an asynchronous schema", { key: "k", scope: "run", initial: "", schema: z.string().refine(async () => true) }],
  ])("%s is refused", (_, declaration) => {
    expect(() => defineState(declaration as never)).toThrow();
  });
});
