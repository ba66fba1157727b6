import { expect, test } from "vitest";
import { BoughError } from "../../base/errors.ts";
import { aftermathOf, explain, isPassing, Unanswered, Unsent } from "./faults.ts";

const failed = (code: string) => Object.assign(new Error("why"), { code });

test.each([
  ["a lost race", failed("40001"), true, "nothing"],
  ["a deadlock", failed("40P01"), true, "nothing"],
  ["a server that starts", new Unsent(failed("57P03")), true, "nothing"],
  ["no server", new Unsent(failed("ECONNREFUSED")), true, "nothing"],
  ["no connection in time", new Unsent(new Error("timeout exceeded when trying to connect")), true, "nothing"],
  ["a connection that ended", new Error("Connection terminated unexpectedly"), true, "unknown"],
  ["a connection that was reset", failed("ECONNRESET"), true, "unknown"],
  ["a server that shuts down", failed("57P01"), true, "unknown"],
  ["no answer", new Unanswered(10), true, "unknown"],
  ["a wrong password", new Unsent(failed("28P01")), false, "nothing"],
  ["a full disk", failed("53100"), false, "nothing"],
  ["a bug", new TypeError("connection is not a function"), false, "nothing"],
])("%s: whether trying again can help, and what is known", (_, error, passing, aftermath) => {
  expect(isPassing(error)).toBe(passing);
  expect(aftermathOf(error)).toBe(aftermath);
});

test.each([
  ["40001", "store_busy", true],
  ["57014", "store_busy", true],
  ["57P01", "store_unavailable", false],
  ["57P03", "store_unavailable", true],
  ["53300", "store_busy", true],
  ["25006", "store_read_only", false],
  ["53100", "store_read_only", false],
  ["XX001", "store_corrupt", false],
  ["54000", "limit_exceeded", false],
  ["42501", "store_unsupported", false],
])("SQLSTATE %s is told as %s", (sqlState, code, retryable) => {
  expect(explain(failed(sqlState))).toMatchObject({ code, retryable, data: { reason: sqlState } });
});

test("what has no meaning of its own, and what is explained already, pass", () => {
  const bug = new TypeError("a bug");
  const refusal = new BoughError("run_active", "No.");
  expect(explain(bug)).toBe(bug);
  expect(explain(refusal)).toBe(refusal);
});

test("a server that is not there is one that can't be reached", () => {
  const told = explain(new Unsent(failed("ECONNREFUSED")));
  expect(told).toMatchObject({ code: "store_unavailable", retryable: true, data: { reason: "ECONNREFUSED" } });
});
