import { expect, test } from "vitest";
import { whyForeign } from "./foreign.ts";

test.each([
  { uid: 1000, mode: 0o700 },
  { uid: 1000, mode: 0o775 },
  { uid: 0, mode: 0o755 },
])("what is one's own or root's is trusted: %o", (found) => {
  expect(whyForeign(found, 1000)).toBeUndefined();
});

test("what another user owns is not trusted, by root neither", () => {
  expect(whyForeign({ uid: 1001, mode: 0o700 }, 1000)).toMatch(/another user \(uid 1001/);
  expect(whyForeign({ uid: 1001, mode: 0o700 }, 0)).toMatch(/another user/);
});

test("what every user can write is not trusted, whoever owns it", () => {
  expect(whyForeign({ uid: 1000, mode: 0o1777 }, 1000)).toMatch(/every user/);
  expect(whyForeign({ uid: 0, mode: 0o666 }, 1000)).toMatch(/every user/);
});
