import { APICallError, LoadAPIKeyError } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { BoughError } from "../base/errors.ts";
import { describeError, isRetryable, retryAfterMs } from "./failure.ts";
import { defaultRetry, retryDelay } from "./retry.ts";

function apiError(statusCode: number | undefined, more: object = {}): APICallError {
  return new APICallError({
    message: "No luck",
    url: "https://a.example",
    requestBodyValues: { secret: "prompt" },
    ...(statusCode === undefined ? {} : { statusCode }),
    ...more,
  });
}

const coded = (code: string) => Object.assign(new Error("broken"), { code });

describe("describeError", () => {
  test.each([
    [apiError(429), { message: "No luck", code: "429", name: "AI_APICallError" }],
    [
      apiError(200, { cause: coded("UND_ERR_SOCKET") }),
      { message: "No luck", code: "UND_ERR_SOCKET", name: "AI_APICallError" },
    ],
    [new LoadAPIKeyError({ message: "No key" }), { message: "No key", name: "AI_LoadAPIKeyError" }],
    [coded("ECONNRESET"), { message: "broken", code: "ECONNRESET" }],
    [new BoughError("model_failed", "It broke."), { message: "It broke.", code: "model_failed", name: "BoughError" }],
    ["Overloaded", { message: "Overloaded" }],
    [
      { type: "overloaded_error", message: "Busy" },
      { message: "Busy", code: "overloaded_error" },
    ],
    [
      { type: "error", error: { type: "api_error", message: "Hm" } },
      { message: "Hm", code: "api_error" },
    ],
    [
      { code: 503, message: "Later" },
      { message: "Later", code: "503" },
    ],
    [undefined, { message: "The model failed without an error message." }],
    [{ prompt: "secret" }, { message: "The model failed without an error message." }],
  ])("%j", (error, expected) => {
    expect(describeError(error)).toEqual(expected);
  });

  test("neither stack nor request nor a whole response is told", () => {
    const told = describeError(apiError(400, { message: `Bad: ${"x".repeat(10_000)}`, responseBody: "secret" }));
    expect(told.message.length).toBeLessThanOrEqual(500);
    expect(Object.keys(told).sort()).toEqual(["code", "message", "name"]);
  });
});

describe("isRetryable", () => {
  const circular = new Error("round");
  circular.cause = circular;
  test.each([
    [apiError(429), true],
    [apiError(500), true],
    [apiError(529), true],
    [apiError(408), true],
    [apiError(400), false],
    [apiError(404), false],
    [apiError(200, { isRetryable: true }), true],
    [apiError(429, { data: { error: { code: "insufficient_quota" } } }), false],
    [new LoadAPIKeyError({ message: "No key" }), false],
    [coded("ECONNRESET"), true],
    [coded("EAI_AGAIN"), true],
    [coded("ENOENT"), false],
    [new TypeError("terminated", { cause: coded("UND_ERR_SOCKET") }), true],
    [new TypeError("fetch failed"), true],
    [new TypeError("x is not a function"), false],
    [circular, false],
    [new DOMException("stop", "AbortError"), false],
    [new BoughError("model_failed", "cut", { retryable: true }), true],
    [new BoughError("model_failed", "timeout"), false],
    [{ type: "overloaded_error", message: "Overloaded" }, true],
    [{ error: { type: "rate_limit_error", message: "" } }, true],
    [{ type: "error", code: "server_error", message: "" }, true],
    [{ type: "invalid_request_error", message: "bad" }, false],
    [{ code: "insufficient_quota", message: "rate limit" }, false],
    [{ status: 503 }, true],
    [{ status: 401 }, false],
    ["Overloaded", true],
    ["Rate limit reached", true],
    ["prompt is too long", false],
    [undefined, false],
    [null, false],
    [7, false],
  ])("%o: %s", (error, expected) => {
    expect(isRetryable(error)).toBe(expected);
  });
});

describe("retryAfterMs", () => {
  const now = Date.UTC(2026, 0, 1, 12, 0, 0);
  test.each([
    [{ "retry-after": "3" }, 3_000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after-ms": "250", "retry-after": "3" }, 250],
    [{ "retry-after-ms": "soon", "retry-after": "3" }, 3_000],
    [{ "retry-after": "Thu, 01 Jan 2026 12:00:20 GMT" }, 20_000],
    [{ "retry-after": "Thu, 01 Jan 2026 11:00:00 GMT" }, 0],
    [{ "retry-after": "later" }, undefined],
    [{ "retry-after": "" }, undefined],
    [{}, undefined],
    [undefined, undefined],
  ])("%j: %j", (responseHeaders, expected) => {
    expect(retryAfterMs(apiError(429, { responseHeaders }), now)).toBe(expected);
  });

  test("an error that is no object asks for nothing", () => {
    expect(retryAfterMs("busy", now)).toBeUndefined();
  });
});

describe("retryDelay", () => {
  const delay = (attempt: number, more: object = {}) =>
    retryDelay({ error: apiError(500), attempt, policy: defaultRetry, random: () => 1, now: 0, ...more });
  const asking = (seconds: number) => apiError(429, { responseHeaders: { "retry-after": String(seconds) } });

  test("waits twice as long each time, and not at all after the last attempt", () => {
    expect([delay(1), delay(2), delay(3), delay(4)]).toEqual([1_000, 2_000, undefined, undefined]);
  });

  test("chance takes away up to half", () => {
    expect(delay(1, { random: () => 0 })).toBe(500);
    expect(delay(2, { random: () => 0.5 })).toBe(1_500);
  });

  test("never waits longer than the policy says", () => {
    expect(delay(20, { policy: { ...defaultRetry, attempts: 99 } })).toBe(30_000);
  });

  test("what the provider asks for is waited, up to a minute; beyond that the call is not made again", () => {
    expect(delay(1, { error: asking(45) })).toBe(45_000);
    expect(delay(1, { error: asking(60) })).toBe(60_000);
    expect(delay(1, { error: asking(61) })).toBeUndefined();
  });

  test("an error that stays is not tried again", () => {
    expect(delay(1, { error: apiError(400) })).toBeUndefined();
  });
});
