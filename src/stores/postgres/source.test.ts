import { expect, test, vi } from "vitest";
import { postgresStore } from "./index.ts";
import { canSpareOne, isPool } from "./source.ts";

vi.mock("pg", () => {
  throw new Error("Cannot find package 'pg'");
});

test("a URL without the driver installed says what to install", async () => {
  await expect(postgresStore("postgres://localhost/app")).rejects.toMatchObject({
    code: "dependency_missing",
    message: "PostgreSQL needs a driver: run `npm install pg`.",
    data: { package: "pg" },
  });
});

test("a pool is told from a single connection and from a bare query()", () => {
  const query = async () => ({ rows: [] });
  const connect = async () => ({ query, release() {}, on() {} });
  expect(isPool({ query })).toBe(false);
  expect(isPool({ query, connect } as never)).toBe(true);
  expect(isPool({ query, connect, connection: {} } as never)).toBe(false);
  expect(canSpareOne({ query, connect, options: { max: 1 } } as never)).toBe(false);
  expect(canSpareOne({ query, connect })).toBe(true);
});
