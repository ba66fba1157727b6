import { expect, test, vi } from "vitest";

vi.stubGlobal("addEventListener", () => {});
const { linkTo, parsePlace } = await import("../../studio/src/place.ts");

test.each([
  ["#/", { view: "sessions" }],
  ["#/inbox", { view: "inbox" }],
  ["#/agents/a%2Fb", { view: "agents", agent: "a/b" }],
  ["#/settings", { view: "settings" }],
  ["#/s/one", { view: "branch", session: "one" }],
  ["#/s/a%20b/c%3Fd", { view: "branch", session: "a b", branch: "c?d" }],
  [
    "#/s/s/main?at=9&with=other&pane=log&m=x%2F1",
    { view: "branch", session: "s", branch: "main", at: 9, with: "other", pane: "log", message: "x/1" },
  ],
] as const)("%s is a place, and its link", (hash, place) => {
  expect(parsePlace(hash)).toEqual(place);
  expect(linkTo(place)).toBe(hash);
});

test.each([
  ["", { view: "sessions" }],
  ["#token=secret", { view: "sessions" }],
  ["#/s/", { view: "sessions" }],
  ["#/nowhere", { view: "sessions" }],
  ["#/s/a/b?at=x&pane=evil", { view: "branch", session: "a", branch: "b" }],
  ["#/s/%E0%A4%A", { view: "branch", session: "%E0%A4%A" }],
] as const)("%j, which is not quite one, leads somewhere all the same", (hash, place) => {
  expect(parsePlace(hash)).toEqual(place);
});
