import { createHash, randomUUID } from "node:crypto";
import type { BlobPlace, Blobs } from "../../src/log/blobs.ts";
import { refuse } from "../../src/log/refusals.ts";

/** An object store in memory that can be told to fail, and that says what it has. */
export class OutsideBlobs implements Blobs {
  readonly objects = new Map<string, Uint8Array>();
  readonly sent: string[] = [];
  failsToKeep = false;
  failsToRemove = false;

  async write() {
    const pieces: Uint8Array[] = [];
    const hash = createHash("sha256");
    return {
      add: async (chunk: Uint8Array) => {
        pieces.push(new Uint8Array(chunk));
        hash.update(chunk);
      },
      finish: async () => ({ id: hash.copy().digest("hex"), size: Buffer.concat(pieces).length }),
      keep: async (place: BlobPlace, onProgress: () => Promise<void>) => {
        await onProgress();
        this.sent.push(nameOf(place));
        if (this.failsToKeep) throw new Error("The object store is away.");
        if (this.objects.has(nameOf(place))) throw new Error("A place was used twice.");
        this.objects.set(nameOf(place), Buffer.concat(pieces));
      },
      abort: async () => {
        pieces.length = 0;
      },
    };
  }

  async *read(place: BlobPlace, range?: { from: number; to?: number | undefined }) {
    const bytes = this.objects.get(nameOf(place));
    if (!bytes) throw refuse.contentNotFound({ sessionId: place.sessionId, branchId: "" }, place.key);
    const wanted = bytes.subarray(range?.from ?? 0, range?.to);
    for (let at = 0; at < wanted.length; at += 100_000) yield new Uint8Array(wanted.subarray(at, at + 100_000));
  }

  async remove(place: BlobPlace) {
    if (this.failsToRemove) throw new Error("The object store is away.");
    this.objects.delete(nameOf(place));
  }

  async *list() {
    for (const [name, bytes] of this.objects) {
      const [sessionId, key] = JSON.parse(name) as [string, string];
      yield { sessionId, key, size: bytes.length };
    }
  }

  async url({ key }: BlobPlace, { expiresMs }: { expiresMs: number }) {
    return { url: `https://blobs.test/${key}?nonce=${randomUUID()}`, expiresAt: expiresMs };
  }
}

function nameOf({ sessionId, key }: BlobPlace): string {
  return JSON.stringify([sessionId, key]);
}
