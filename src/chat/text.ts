// Text that is safe to print: terminal control characters and invisible characters are escaped.

/**
 * C0, DEL and C1 controls; text directions (U+061C, U+200E, U+200F, U+202A–202E, U+2066–2069); zero-width characters (U+200B,
 * U+FEFF); line separators (U+2028, U+2029).
 */
const steering =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** Escapes control and invisible characters of a text, so that it can be printed. */
export function visible(text: string): string {
  return text.replace(steering, writeOut);
}

function writeOut(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Escapes a complete text. */
export function safeText(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .split(/([\n\t])/)
    .map((piece) => (piece === "\n" || piece === "\t" ? piece : visible(piece)))
    .join("");
}

/** Escapes a text that arrives in chunks: half a character is held back until the other half arrives. */
export class SafeStream {
  #held = "";

  write(piece: string): string {
    const text = this.#held + piece;
    const [, whole = "", held = ""] = /^([\s\S]*?)([\ud800-\udbff\r]?)$/.exec(text) ?? [];
    this.#held = held;
    return safeText(whole);
  }

  /** Returns what was held back, at the end. */
  end(): string {
    const rest = safeText(this.#held);
    this.#held = "";
    return rest;
  }
}

/** Any value on one line. */
export function oneLine(value: unknown, width: number): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return shorten(visible(text.replace(/\s+/g, " ")), width);
}

export function shorten(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0))}…`;
}

/** Formats a time for people, in UTC. */
export function moment(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}
