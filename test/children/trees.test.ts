import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { treeCases } from "./trees.cases.ts";

describe("children in memory", () => treeCases(async () => memoryStore(), { runs: 30 }));

describe("children on SQLite", () =>
  treeCases(async () => {
    const folder = mkdtempSync(join(tmpdir(), "bough-trees-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return sqliteStore(join(folder, "bough.db"));
  }));
