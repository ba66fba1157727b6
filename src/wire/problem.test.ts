import { expect, test } from "vitest";
import { problem, problemTable } from "./problem.ts";

test("a problem tells its code, its status and what is about the caller's own", () => {
  const data = { runId: "r", owner: "host/123", id: "what was said", stack: "at …" };
  expect(problem("run_active", "Run r is active.", data)).toEqual({
    type: "urn:bough:problem:run_active",
    title: "A run is active on the branch.",
    status: 409,
    code: "run_active",
    detail: "Run r is active.",
    data: { runId: "r" },
  });
});

test("what went wrong inside the server is not told", () => {
  const { detail, data, title } = problem("store_corrupt", "/var/lib/x.db line 3", { seq: 3 });
  expect(detail).toBe(title);
  expect(data).toEqual({});
});

test("every status is one of HTTP's for refusals", () => {
  for (const { status } of Object.values(problemTable)) expect(status).toBeGreaterThanOrEqual(400);
});
