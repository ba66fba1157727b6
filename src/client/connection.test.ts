import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ClientConnection,
  type ConnectionInput,
  type ConnectionState,
  defaultBackoff,
  delayMs,
  idleConnection,
  step,
  transitions,
} from "./connection.ts";

const states = Object.keys(transitions) as ConnectionState[];
const inputs = Object.keys(transitions.idle) as ConnectionInput[];

/** Every transition that leads anywhere else; what is not here stays. */
const moves: Record<string, ConnectionState> = {
  "idle start": "connecting",
  "idle close": "closed",
  "connecting opened": "replaying",
  "connecting lost": "waiting",
  "connecting refused": "failed",
  "connecting close": "closed",
  "replaying ready": "live",
  "replaying lost": "waiting",
  "replaying refused": "failed",
  "replaying close": "closed",
  "live lost": "waiting",
  "live refused": "failed",
  "live close": "closed",
  "waiting due": "connecting",
  "waiting refused": "failed",
  "waiting close": "closed",
};

describe("the table", () => {
  test.each(states.flatMap((state) => inputs.map((input) => [state, input] as const)))("%s, %s", (state, input) => {
    expect(transitions[state][input]).toBe(moves[`${state} ${input}`] ?? state);
    expect(step({ state, losses: 0 }, input).state).toBe(transitions[state][input]);
  });

  test("leads from everywhere to an end, and from an end nowhere", () => {
    for (const state of states) {
      const isEnd = state === "closed" || state === "failed";
      expect(new Set(inputs.map((input) => transitions[state][input])).has("closed")).toBe(state !== "failed");
      if (isEnd) for (const input of inputs) expect(transitions[state][input]).toBe(state);
    }
  });
});

describe("whatever happens in whatever order", () => {
  // Ends are rare, or nothing would ever happen before them.
  const goesOn = inputs.filter((each) => each !== "close" && each !== "refused");
  const input = fc.oneof(
    { arbitrary: fc.constantFrom(...goesOn), weight: 20 },
    { arbitrary: fc.constantFrom(...inputs), weight: 1 },
  );
  const play = (given: readonly ConnectionInput[]) => {
    const all = [idleConnection];
    for (const each of given) all.push(step(all.at(-1)!, each));
    return all;
  };

  test("losses count connections in a row that brought nothing", () => {
    fc.assert(
      fc.property(fc.array(input, { maxLength: 60 }), (given) => {
        let losses = 0;
        let state: ConnectionState = "idle";
        for (const [i, connection] of play(given).slice(1).entries()) {
          const after: ConnectionState = transitions[state][given[i]!];
          if ((after === "waiting" || after === "failed") && after !== state) losses++;
          if (after === "live" || (after === "replaying" && given[i] === "advanced")) losses = 0;
          state = after;
          expect(connection).toMatchObject({ state, losses });
        }
      }),
    );
  });

  test("events are taken only after a connection was opened, and asked for again only after a wait", () => {
    fc.assert(
      fc.property(fc.array(input, { maxLength: 60 }), (given) => {
        const seen = play(given).map(({ state }) => state);
        const changes = seen.filter((state, i) => i === 0 || state !== seen[i - 1]);
        for (const [i, state] of changes.entries()) {
          if (state === "replaying") expect(changes[i - 1]).toBe("connecting");
          if (state === "live") expect(changes[i - 1]).toBe("replaying");
          if (state === "connecting") expect(["idle", "waiting"]).toContain(changes[i - 1]);
        }
      }),
    );
  });
});

test("a state that does not change is the same object, and an error goes with the next change", () => {
  const live: ClientConnection = { state: "live", losses: 0 };
  expect(step(live, "ready")).toBe(live);
  const waiting = step(live, "lost", "why");
  expect(waiting).toEqual({ state: "waiting", losses: 1, error: "why" });
  expect(step(waiting, "due")).toEqual({ state: "connecting", losses: 1 });
});

test("a connection that brought an event is no loss in a row, though it never got to the end of the log", () => {
  const replaying: ClientConnection = { state: "replaying", losses: 3 };
  expect(step(replaying, "advanced")).toEqual({ state: "replaying", losses: 0 });
  expect(step(replaying, "lost")).toEqual({ state: "waiting", losses: 4 });
});

describe("the wait", () => {
  test("doubles up to its maximum, from half to all of it by chance", () => {
    const waits = (chance: number) => [1, 2, 3, 7, 8, 1000].map((losses) => delayMs(losses, defaultBackoff, chance));
    expect(waits(1)).toEqual([500, 1000, 2000, 30_000, 30_000, 30_000]);
    expect(waits(0)).toEqual([250, 500, 1000, 15_000, 15_000, 15_000]);
  });

  test("is never shorter than the server asks for", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2000 }), fc.double({ min: 0, max: 1, noNaN: true }), (losses, chance) => {
        const wait = delayMs(losses, defaultBackoff, chance, 7000);
        expect(wait).toBeGreaterThanOrEqual(7000);
        expect(wait).toBeLessThanOrEqual(7000 + 30_000);
      }),
    );
  });
});
