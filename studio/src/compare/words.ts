// Which words of a text another one does not have, loaded with the first comparison.

import { diffWordsWithSpace } from "diff";

/** Long and unlike texts take long: rather none than a page that stands still. */
const timeoutMs = 80;

/** The text in pieces; undefined where less than half of the words are the same. */
export function ownWords(other: string, text: string): { value: string; isOwn: boolean }[] | undefined {
  const changes = diffWordsWithSpace(other, text, { timeout: timeoutMs });
  if (!changes) return undefined;
  const kept = changes.filter(({ removed }) => !removed);
  const same = kept.reduce((sum, { added, value }) => (added ? sum : sum + value.length), 0);
  if (same * 2 < text.length) return undefined;
  return kept.map(({ value, added }) => ({ value, isOwn: added === true }));
}
