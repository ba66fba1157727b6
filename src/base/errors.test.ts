import { describe, expect, test, vi } from "vitest";
import { BoughError } from "./errors.ts";

describe("BoughError", () => {
  test("it carries its code, its data, its cause and whether trying again can help", () => {
    const cause = new Error("below");
    const error = new BoughError("store_busy", "Later.", { data: { n: 1 }, cause, retryable: true });
    expect(error).toMatchObject({ name: "BoughError", code: "store_busy", message: "Later.", data: { n: 1 } });
    expect(error.retryable).toBe(true);
    expect(error.cause).toBe(cause);
    expect(error).toBeInstanceOf(Error);
  });

  test("without options it has no data, no cause, and is final", () => {
    const error = new BoughError("aborted", "Gone.");
    expect(error.data).toEqual({});
    expect(error.retryable).toBe(false);
    expect("cause" in error).toBe(false);
  });

  test("is() knows those of another copy of the package", async () => {
    vi.resetModules();
    const other = await import("./errors.ts");
    const error = new other.BoughError("run_active", "Busy.");
    expect(error).not.toBeInstanceOf(BoughError);
    expect(BoughError.is(error)).toBe(true);
    expect(BoughError.is(error, "run_active")).toBe(true);
    expect(BoughError.is(error, "aborted")).toBe(false);
  });

  test("is() is not taken in by what only looks like one", () => {
    const lookalikes = [undefined, null, "run_active", { name: "BoughError", code: "run_active" }, new Error("x")];
    for (const value of lookalikes) expect(BoughError.is(value)).toBe(false);
  });
});
