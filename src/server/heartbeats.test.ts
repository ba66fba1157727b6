import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Heartbeats } from "./heartbeats.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function beating() {
  const at: number[] = [];
  return { at, beat: () => void at.push(Date.now()) };
}

test("everybody is looked at once in a heartbeat, and not all in the same moment", () => {
  const heart = new Heartbeats(1600);
  const all = Array.from({ length: 40 }, beating);
  for (const each of all) heart.add(each);
  const from = Date.now();
  vi.advanceTimersByTime(1600);
  for (const { at } of all) expect(at).toHaveLength(1);
  expect(new Set(all.map(({ at }) => at[0])).size).toBeGreaterThan(4);
  // Nobody is looked at right after it came.
  for (const { at } of all) expect(at[0]! - from).toBeGreaterThanOrEqual(800);
  vi.advanceTimersByTime(3200);
  for (const { at } of all) expect(at).toHaveLength(3);
});

test("whoever left is not looked at any more, and nobody left means no timer", () => {
  const heart = new Heartbeats(1600);
  const [stays, leaves] = [beating(), beating()];
  const stop = heart.add(stays);
  const leave = heart.add(leaves);
  expect(vi.getTimerCount()).toBe(1);
  leave();
  leave();
  vi.advanceTimersByTime(1600);
  expect(stays.at).toHaveLength(1);
  expect(leaves.at).toHaveLength(0);
  expect(vi.getTimerCount()).toBe(1);
  stop();
  expect(vi.getTimerCount()).toBe(0);
  heart.add(leaves);
  vi.advanceTimersByTime(1600);
  expect(leaves.at).toHaveLength(1);
});
