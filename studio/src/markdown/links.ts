// Which addresses a text may link to. Pictures of other servers are links, too: loading one would tell that server who reads what.

const allowed = new Set(["http:", "https:", "mailto:"]);

/** The address if a link may lead there: an absolute one with a scheme that runs nothing. */
export function safeLink(address: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: browsers skip these inside of a scheme
  const cleaned = address.replace(/[\u0000-\u0020\u007f-\u009f\u200b-\u200f\u2028\u2029\ufeff]/g, "");
  try {
    return allowed.has(new URL(cleaned).protocol) ? cleaned : undefined;
  } catch {
    return undefined;
  }
}
