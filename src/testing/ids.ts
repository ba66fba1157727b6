import type { Ids } from "../base/ids.ts";

/** Ids that are the same in every run with the same seed, and different for different seeds. */
export function seededIds(seed: number | string): Ids {
  let count = 0;
  return {
    next() {
      count += 1;
      return `${seed}-${String(count).padStart(6, "0")}`;
    },
  };
}

/**
 * Ids that backends tend to confuse or reject: case pairs, the same letter composed and decomposed, path steps,
 * device names, quoting, prototype members, and names too long for a file.
 */
export const hostileIds: readonly string[] = [
  "A",
  "a",
  "\u212a", // the Kelvin sign, which folds to "k"
  "k",
  "caf\u00e9",
  "cafe\u0301",
  "\ufb01",
  "fi",
  ".",
  "..",
  "../..",
  "/",
  "a/b",
  "a\\b",
  "a:b",
  "a.",
  "a ",
  " a",
  " ",
  "CON",
  "con",
  "NUL.txt",
  "-rf",
  "~",
  "*",
  "?",
  "%",
  "%2e",
  "%2E",
  "%2F",
  "%41",
  "_",
  "=41",
  "+",
  "'",
  '"',
  "`",
  "'; DROP TABLE events; --",
  "null",
  "undefined",
  "0",
  "00",
  "1e3",
  "true",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "session.json",
  "branches",
  "\u{1f600}",
  "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}",
  "\uff5e", // after "\u{1f600}" in UTF-16 order, before it in code point order
  "\ufeffa",
  "\u202ea",
  "\u2028",
  "x".repeat(256),
  `${"x".repeat(255)}y`,
  "\u8a9e".repeat(256),
];
