import { expect, test } from "vitest";
import { manualClock } from "../../testing/index.ts";
import { Parking } from "./parking.ts";

const graceMs = 5000;

function aParking() {
  const clock = manualClock();
  const parking = new Parking({ clock, clientGraceMs: graceMs });
  const left: string[] = [];
  const ask = (name: string, callId?: string, kind = "permission") =>
    parking.wait({ callId, kind }, () => left.push(name));
  return { clock, parking, left, ask };
}

test("a question of no call is left at once", () => {
  const { left, ask } = aParking();
  ask("continue?");
  expect(left).toEqual(["continue?"]);
});

test("Parking-1, Parking-3: questions are left together, when each call waits or is done", () => {
  const { parking, left, ask } = aParking();
  parking.begin(["a", "b", "c"]);
  ask("a", "a");
  ask("b", "b");
  expect(left).toEqual([]);
  parking.done("c");
  expect(left).toEqual(["a", "b"]);
});

test("Parking-1: a call that was answered goes on, and the others wait for it", () => {
  const { parking, left, ask } = aParking();
  parking.begin(["a", "b", "c"]);
  const answered = ask("a", "a");
  ask("b", "b");
  answered();
  parking.done("c");
  expect(left).toEqual([]);
  parking.done("a");
  expect(left).toEqual(["b"]);
});

test("Parking-1: a call that waits for another to end keeps nobody from parking", () => {
  const { parking, left, ask } = aParking();
  parking.begin(["a", "b"]);
  ask("a", "a");
  parking.queue("b");
  expect(left).toEqual(["a"]);
});

test("Parking-1: a hook that asks without naming its call parks as well", () => {
  const { parking, left, ask } = aParking();
  parking.begin(["a", "b"]);
  ask("a", "a");
  ask("of a hook");
  expect(left).toEqual(["a", "of a hook"]);
});

test("Parking-2: a client is waited for, and no person for longer than that", async () => {
  const { clock, parking, left, ask } = aParking();
  parking.begin(["a", "b"]);
  ask("person", "a");
  const answered = ask("client", "b", "client-tool");
  clock.advance(graceMs - 1);
  await Promise.resolve();
  expect(left).toEqual([]);
  answered();
  expect(left).toEqual([]);
  parking.done("b");
  expect(left).toEqual(["person"]);
});

test("Parking-2: a client that does not answer is left with the others", async () => {
  const { clock, parking, left, ask } = aParking();
  parking.begin(["a", "b"]);
  ask("client", "b", "client-tool");
  ask("person", "a");
  clock.advance(graceMs);
  for (let turns = 0; turns < 10; turns++) await Promise.resolve();
  expect(left).toEqual(["client", "person"]);
});
