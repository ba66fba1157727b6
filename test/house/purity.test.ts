import { expect, test } from "vitest";
import { impureFrom, portFiles, portRooms, type Room, rooms } from "../../scripts/rooms.cjs";
import { lint } from "./lint.ts";

/** The files among these that break purity, and whether the command failed. */
async function impureOf(files: Record<string, string>): Promise<{ impure: string[]; failed: boolean }> {
  const { findings, failed } = await lint(files);
  const isPurity = (rule: string) => rule === "plugin" || /noRestricted(Globals|Imports)$/.test(rule);
  const found = findings.filter(({ rule, severity }) => isPurity(rule) && severity === "error");
  return { impure: [...new Set(found.map(({ file }) => file))].sort(), failed };
}

const inRuns = (texts: string[]) => Object.fromEntries(texts.map((text, n) => [`src/runs/${n}.ts`, `${text};\n`]));

const offences = [
  "export const now = Date.now()",
  "export const clock = { now: Date.now }",
  "export const { now } = Date",
  "export const now = new Date()",
  "export const now = new Date",
  "export const now = Date()",
  "export const now = performance.now()",
  "export const now = globalThis.Date.now()",
  "export const die = Math.random()",
  "export const id = crypto.randomUUID()",
  'import { randomUUID } from "node:crypto";\nexport const id = randomUUID()',
  "setTimeout(() => {}, 10)",
  "setInterval(() => {}, 10)",
  "globalThis.setTimeout(() => {}, 10)",
  "export const signal = AbortSignal.timeout(10)",
  'export * from "node:timers/promises"',
  'export * from "node:fs"',
  'export * from "node:fs/promises"',
  'export const fs = await import("node:fs")',
  'export type { Stats } from "node:fs"',
];

const innocent = [
  "export const then = new Date(0)",
  "export const half = Math.floor(1.5)",
  'import { createHash } from "node:crypto";\nexport const hash = createHash("sha256")',
  "export const wait = (clock: { now(): number }) => clock.now()",
];

test("time, chance and files are refused in a room below level 7", async () => {
  const files = inRuns(offences);
  const { impure, failed } = await impureOf(files);
  expect(
    Object.keys(files)
      .filter((name) => !impure.includes(name))
      .map((name) => files[name]),
  ).toEqual([]);
  expect(failed).toBe(true);
});

test("a fixed date, a hash and a port are not refused", async () => {
  expect((await impureOf(inRuns(innocent))).impure).toEqual([]);
});

test("every room below level 7 is held, the ports' own files, tests and higher rooms are not", async () => {
  const fileIn = (room: string) => `src/${room.replace("*", "sqlite")}/inner/file.ts`;
  const isHeld = ({ name, level }: Room) => level < impureFrom && !portRooms.includes(name);
  const held = rooms.filter(isHeld).map(({ name }) => fileIn(name));
  const free = rooms.filter((room) => !isHeld(room)).map(({ name }) => fileIn(name));
  const all = [...held, ...free, ...portFiles, "src/runs/file.test.ts", "src/index.ts"];
  const offence = 'import "node:fs";\nexport const now = Date.now();\n';
  const { impure } = await impureOf(Object.fromEntries(all.map((name) => [name, offence])));
  expect(impure).toEqual(held.sort());
});
