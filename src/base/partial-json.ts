// PartialJson: reads the JSON object in a text that is still being written, piece by piece. It owns what was read so far.
//   PartialJson-1. Every character is looked at once, however the text is cut.
//   PartialJson-2. Whatever it gives is in the text: lists, objects and strings may lack their ends; numbers, literals and keys are
//       given when they are whole.
//   PartialJson-3. It never throws. What turns out to be no JSON is forgotten, and reading begins anew at the next brace.
//   PartialJson-4. A value that was given never changes: of the next one, only what is still open is made anew.

import { factLimits, type Json, type JsonObject } from "./json.ts";

/** A list or an object whose end is not there yet. */
interface Open {
  readonly made: Json[] | JsonObject;
  /** Of an object: the key whose value comes next. */
  key: string;
}

type State =
  | "seek" // for the brace it begins with
  | "first-key"
  | "key"
  | "colon"
  | "first-value"
  | "value"
  | "next" // a comma, or the end of what is open
  | "string"
  | "escape"
  | "hex"
  | "word" // a number or a literal, which ends where something else begins
  | "done";

const space = /[ \t\n\r]/;
const wordCharacter = /[-+.0-9A-Za-z]/;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

export class PartialJson {
  readonly #stack: Open[] = [];
  #state: State = "seek";
  #isKey = false;
  /** The string or word that is being read. */
  #text = "";
  #hex = "";
  #whole: JsonObject | undefined;
  #changes = 0;

  /** Grows whenever the value does. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether the object has its end; what comes after it is not read. */
  get isDone(): boolean {
    return this.#state === "done";
  }

  /** The object so far. */
  get value(): JsonObject | undefined {
    let inner: Json | undefined = this.#openString();
    for (let depth = this.#stack.length - 1; depth >= 0; depth--) {
      const { made, key } = this.#stack[depth]!;
      const copy = Array.isArray(made) ? [...made] : { ...made };
      if (inner !== undefined) put(copy, key, inner);
      inner = copy;
    }
    return this.#whole ?? (inner as JsonObject | undefined);
  }

  add(text: string): void {
    for (let at = 0; at < text.length && this.#state !== "done"; ) at = this.#step(text, at);
  }

  /** Reads from this place on; returns the next one. A character that does not fit is looked at again as a beginning. */
  #step(text: string, at: number): number {
    const char = text[at]!;
    switch (this.#state) {
      case "string":
        return this.#readString(text, at);
      case "escape":
      case "hex":
        return this.#unescape(char) ? at + 1 : this.#fail(at);
      case "word":
        if (!wordCharacter.test(char)) return this.#endWord() ? at : this.#fail(at);
        this.#text += char;
        return at + 1;
      case "seek":
        if (char === "{") this.#open({});
        return at + 1;
      default:
        return space.test(char) || this.#readMark(char) ? at + 1 : this.#fail(at);
    }
  }

  /** A character between strings and words; false if it can't stand here. */
  #readMark(char: string): boolean {
    const state = this.#state;
    if (char === '"') return state === "colon" || state === "next" ? false : this.#begin("string", "");
    if (state === "colon") return char === ":" && this.#enter("value");
    const open = this.#stack.at(-1)!.made;
    const end = Array.isArray(open) ? "]" : "}";
    if (char === end) return state !== "key" && state !== "value" && this.#close();
    if (state === "next") return char === "," && this.#enter(Array.isArray(open) ? "value" : "key");
    if (state !== "value" && state !== "first-value") return false;
    if (char === "{") return this.#open({});
    if (char === "[") return this.#open([]);
    return wordCharacter.test(char) && this.#begin("word", char);
  }

  #enter(state: State): true {
    this.#state = state;
    return true;
  }

  #begin(state: "string" | "word", text: string): true {
    this.#isKey = this.#state === "key" || this.#state === "first-key";
    this.#text = text;
    if (state === "string" && !this.#isKey) this.#changes++;
    return this.#enter(state);
  }

  #open(made: Json[] | JsonObject): boolean {
    // The log takes nothing deeper, so it would not become an answer.
    if (this.#stack.length === factLimits.depth) return false;
    this.#stack.push({ made, key: "" });
    this.#changes++;
    return this.#enter(Array.isArray(made) ? "first-value" : "first-key");
  }

  #close(): true {
    const { made } = this.#stack.pop()!;
    if (this.#stack.length > 0) return this.#put(made);
    this.#whole = made as JsonObject;
    return this.#enter("done");
  }

  #put(value: Json): true {
    const { made, key } = this.#stack.at(-1)!;
    put(made, key, value);
    return this.#enter("next");
  }

  #readString(text: string, from: number): number {
    let to = from;
    for (; to < text.length; to++) {
      const code = text.charCodeAt(to);
      if (code === 0x22 || code === 0x5c || code < 0x20) break;
    }
    this.#grow(text.slice(from, to));
    if (to === text.length) return to;
    if (text[to] === "\\") this.#state = "escape";
    else if (text[to] !== '"') return this.#fail(to);
    else if (!this.#isKey) this.#endString();
    else {
      this.#stack.at(-1)!.key = this.#text;
      this.#state = "colon";
    }
    return to + 1;
  }

  #endString(): void {
    // Half a character that nothing completes belongs to it after all.
    if (this.#openString() !== this.#text) this.#changes++;
    this.#put(this.#text);
  }

  #grow(text: string): void {
    this.#text += text;
    if (text !== "" && !this.#isKey) this.#changes++;
  }

  #unescape(char: string): boolean {
    if (this.#state === "escape") {
      if (char === "u") {
        this.#hex = "";
        return this.#enter("hex");
      }
      const meant = escapes[char];
      if (meant !== undefined) this.#grow(meant);
      return meant !== undefined && this.#enter("string");
    }
    this.#hex += char;
    if (!/^[0-9a-f]+$/i.test(this.#hex)) return false;
    if (this.#hex.length < 4) return true;
    this.#grow(String.fromCharCode(Number.parseInt(this.#hex, 16)));
    return this.#enter("string");
  }

  #endWord(): boolean {
    try {
      this.#put(JSON.parse(this.#text) as Json);
      this.#changes++;
      return true;
    } catch {
      return false;
    }
  }

  #fail(at: number): number {
    this.#stack.length = 0;
    this.#state = "seek";
    return at;
  }

  /** The beginning of a string, without half a character at its end. */
  #openString(): string | undefined {
    const isOpen = this.#state === "string" || this.#state === "escape" || this.#state === "hex";
    if (!isOpen || this.#isKey) return undefined;
    const code = this.#text.charCodeAt(this.#text.length - 1);
    return code >= 0xd800 && code < 0xdc00 ? this.#text.slice(0, -1) : this.#text;
  }
}

function put(into: Json[] | JsonObject, key: string, value: Json): void {
  if (Array.isArray(into)) into.push(value);
  // As JSON.parse has it: a member like any other.
  else if (key === "__proto__")
    Object.defineProperty(into, key, { value, enumerable: true, writable: true, configurable: true });
  else into[key] = value;
}
