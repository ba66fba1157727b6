import { expect, test } from "vitest";
import { legalNames } from "./names.ts";

const named = (names: string[], prefix = "") => [...legalNames(names, prefix).values()];

test("what no provider takes is replaced", () => {
  expect(named(["get file", "a.b/c", "ä", "ok_-1"])).toEqual(["get_file", "a_b_c", "_", "ok_-1"]);
  expect(named([""])).toEqual(["_"]);
});

test("names that become the same are told apart, also from those that were so named", () => {
  expect(named(["a.b", "a b", "a_b_2", "a/b"])).toEqual(["a_b", "a_b_2", "a_b_2_2", "a_b_3"]);
});

test("long names are cut, with their prefix and their number", () => {
  const long = "x".repeat(80);
  const [first, second] = named([long, `${long}y`], "p_");
  expect(first).toBe(`p_${"x".repeat(62)}`);
  expect(second).toBe(`p_${"x".repeat(60)}_2`);
});
