import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { flowCases } from "./flow.cases.ts";

describe("workflows in memory", () => flowCases(async () => memoryStore()));

describe("workflows on SQLite", () =>
  flowCases(async () => {
    const folder = mkdtempSync(join(tmpdir(), "bough-flows-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return sqliteStore(join(folder, "bough.db"));
  }));
