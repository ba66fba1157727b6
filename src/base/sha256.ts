// SHA-256 without waiting: Node's where there is one, otherwise the one below, so that what runs on the web platform needs no
// Node. Web Crypto only has one that is awaited, and an order of inputs must not depend on when a digest is ready.

import { base64url } from "./bytes.ts";
import { nodeModule } from "./node.ts";

const encoder = new TextEncoder();

/** The digest of bytes, or of a text in UTF-8. */
export function sha256(data: string | Uint8Array): Uint8Array {
  const bytes = typeof data === "string" ? encoder.encode(data) : data;
  const node = nodeModule<typeof import("node:crypto")>("node:crypto");
  return node ? node.createHash("sha256").update(bytes).digest() : portableSha256(bytes);
}

/** The same, in hexadecimal digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hex(sha256(data));
}

/** A digest that takes bytes piece by piece and ends as hexadecimal digits. */
export interface RunningSha256 {
  update(bytes: Uint8Array): void;
  digest(): string;
}

export function runningSha256(): RunningSha256 {
  const node = nodeModule<typeof import("node:crypto")>("node:crypto");
  if (!node) return gatheringSha256();
  const hash = node.createHash("sha256");
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest("hex") };
}

/** Where there is no Node, content is kept in memory anyway: its pieces are held and digested at the end. */
function gatheringSha256(): RunningSha256 {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return {
    update(bytes) {
      pieces.push(bytes);
      size += bytes.length;
    },
    digest() {
      const all = new Uint8Array(size);
      let at = 0;
      for (const piece of pieces) {
        all.set(piece, at);
        at += piece.length;
      }
      return hex(portableSha256(all));
    },
  };
}

function hex(digest: Uint8Array): string {
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The first 192 bits of a text's digest, in 32 characters: enough to name a text by what it says. */
export function textDigest(text: string): string {
  const node = nodeModule<typeof import("node:crypto")>("node:crypto");
  const digest = node ? node.hash("sha256", text, "base64url") : base64url(portableSha256(encoder.encode(text)));
  return digest.slice(0, 32);
}

/** FIPS 180-4, section 6.2, in plain JavaScript. */
export function portableSha256(bytes: Uint8Array): Uint8Array {
  const state = new Uint32Array(initialState());
  const padded = pad(bytes);
  const words = new Uint32Array(64);
  for (let at = 0; at < padded.byteLength; at += 64) compress(state, padded, at, words);
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => void digest.setUint32(4 * i, word));
  return new Uint8Array(digest.buffer);
}

/** The message, a one bit, zeros, and its length in bits, in blocks of 64 bytes. */
function pad(bytes: Uint8Array): DataView {
  const size = Math.ceil((bytes.length + 9) / 64) * 64;
  const padded = new Uint8Array(size);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(size - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(size - 4, (bytes.length * 8) >>> 0);
  return view;
}

function compress(state: Uint32Array, block: DataView, at: number, words: Uint32Array): void {
  const constants = roundConstants();
  for (let i = 0; i < 64; i++) words[i] = i < 16 ? block.getUint32(at + 4 * i) : expand(words, i);
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + constants[i]! + words[i]!) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => {
    state[i] = state[i]! + word;
  });
}

function expand(words: Uint32Array, i: number): number {
  const [x, y] = [words[i - 15]!, words[i - 2]!];
  const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
  const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
  return words[i - 16]! + s0 + words[i - 7]! + s1;
}

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

let constants: { readonly state: readonly number[]; readonly rounds: readonly number[] } | undefined;

function initialState(): readonly number[] {
  constants ??= deriveConstants();
  return constants.state;
}

function roundConstants(): readonly number[] {
  constants ??= deriveConstants();
  return constants.rounds;
}

/** The first 32 bits of the fractional parts of the square roots and the cube roots of the first primes. */
function deriveConstants() {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  const fraction = (root: number) => ((root - Math.floor(root)) * 2 ** 32) >>> 0;
  return {
    state: primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime))),
    rounds: primes.map((prime) => fraction(Math.cbrt(prime))),
  };
}
