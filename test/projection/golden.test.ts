// A log as version 1 wrote it, and the view it gives. Both are kept for ever: whatever changes, old logs read the same.
// UPDATE_GOLDEN=1 writes the view anew, for when the view itself gets a new field; the log is never written again.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { codec, type Fact, keptEvents } from "../../src/events/index.ts";
import { type BranchView, emptyView, fold, project, transcript } from "../../src/projection/index.ts";

const golden = join(import.meta.dirname, "golden");
const stored = readFileSync(join(golden, "v1.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line): { seq: number; id: string; data: string } => JSON.parse(line));
const facts = stored.map((line) => codec.decode(line));

const viewFile = join(golden, "v1.view.json");

function write(view: BranchView): string {
  return `${JSON.stringify({ view, transcript: transcript(view) }, null, 1)}\n`;
}

describe("the log of version 1", () => {
  test("gives the view it gave, byte for byte", () => {
    const text = write(project(facts));
    if (process.env.UPDATE_GOLDEN === "1") writeFileSync(viewFile, text);
    expect(text).toBe(readFileSync(viewFile, "utf8"));
  });

  test("has every kind of fact, and one that nobody knows", () => {
    const kinds = new Set(facts.map(({ type }) => type));
    expect(
      [...keptEvents.map(({ type }) => type), "unknown:moon.rose"].filter((type) => !kinds.has(type as Fact["type"])),
    ).toEqual([]);
  });

  test("fills every part of a view", () => {
    const view = project(facts);
    // Nothing is left out of a view that was folded from the first fact.
    const { skipped, skippedTurns, ...parts } = view;
    expect([skipped, skippedTurns]).toEqual([0, 0]);
    for (const [name, value] of Object.entries(parts)) {
      expect(Object.keys(Object(value)).length > 0 || Number(value) > 0, `${name} is filled`).toBe(true);
    }
    expect(new Set(view.turns.map(({ status }) => status))).toEqual(new Set(["committed", "interrupted"]));
  });

  test("is written the same way today, where the version of a kind is still the first", () => {
    const versions = new Map<string, number>(keptEvents.map(({ type, version }) => [type, version]));
    for (const [i, fact] of facts.entries()) {
      const { seq: _, ...draft } = fact;
      if ((versions.get(fact.type) ?? 1) === 1) expect(codec.encode(draft as never).data).toBe(stored[i]!.data);
    }
  });

  test("can be read at every position", () => {
    const view = emptyView();
    for (const fact of facts) {
      fold(view, fact);
      expect(transcript(view).length).toBeGreaterThanOrEqual(0);
    }
    expect(view.seq).toBe(stored.length);
  });
});
