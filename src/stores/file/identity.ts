// Identity: bough.json. Says which format the directory has, and gives out tickets: numbers that only grow, across
// restarts too, without a sync for each.
//
//   Identity-1. A ticket is generation × 2^24 + a count; a generation is on the disk before its first ticket is given.
//   Identity-2. Every process that writes takes a new generation before it does, so no ticket is given twice. Reading takes none:
//       it should not cost a sync.

import { BoughError } from "../../base/errors.ts";
import type { Disk } from "./disk.ts";
import { formatVersion, paths, standingDirectories } from "./layout.ts";
import { seal, unseal } from "./seal.ts";

const perGeneration = 2 ** 24;
const renewBelow = 2 ** 20;

interface IdentityDocument {
  readonly format: number;
  readonly generation: number;
}

export class Identity {
  readonly #disk: Disk;
  #generation: number;
  /** All, until a generation of this process's own is taken. */
  #given = perGeneration;

  private constructor(disk: Disk, generation: number) {
    this.#disk = disk;
    this.#generation = generation;
  }

  /** `store_too_new`, `store_unsupported`, `store_corrupt`. */
  static async open(disk: Disk): Promise<Identity> {
    const generation = readGeneration(disk);
    const identity = new Identity(disk, generation);
    // Made first, so that the first replacement puts their names on the disk as well: what is synced inside them counts
    // from then on.
    const there = new Set(disk.list(""));
    for (const directory of standingDirectories) if (!there.has(directory)) disk.ensureDirectory(directory);
    if (generation === 0) await identity.renew();
    return identity;
  }

  next(): number {
    if (this.#given === perGeneration) throw new Error("A ticket was requested before a generation was taken.");
    return this.#generation * perGeneration + this.#given++;
  }

  /** Whether a generation has to be taken before more tickets are given. */
  get isLow(): boolean {
    return perGeneration - this.#given < renewBelow;
  }

  async renew(): Promise<void> {
    const document: IdentityDocument = { format: formatVersion, generation: this.#generation + 1 };
    await this.#disk.replace(paths.identity, seal(document));
    this.#generation += 1;
    this.#given = 0;
  }
}

function readGeneration(disk: Disk): number {
  const bytes = disk.readWhole(paths.identity);
  if (!bytes) {
    // It is the first file ever written, so a store without it lost it.
    if (disk.list(paths.sessions).length > 0) throw damaged(disk, "is missing");
    return 0;
  }
  const document = unseal(bytes) as IdentityDocument | undefined;
  if (!document) throw damaged(disk, "is damaged");
  if (document.format > formatVersion) {
    throw new BoughError(
      "store_too_new",
      `The store in ${disk.base} has format ${document.format}; this version of Bough supports ${formatVersion}.`,
      { data: { path: disk.base, format: document.format, known: formatVersion } },
    );
  }
  if (document.format < formatVersion) {
    throw new BoughError(
      "store_unsupported",
      `The store in ${disk.base} has format ${document.format}, written before Bough's first release; this version reads and writes format ${formatVersion}. Nothing was changed. Copy its sessions with the version that wrote it, or choose another directory.`,
      { data: { path: disk.base, format: document.format, known: formatVersion } },
    );
  }
  return document.generation;
}

function damaged(disk: Disk, what: string): BoughError {
  const path = disk.absolute(paths.identity);
  return new BoughError("store_corrupt", `${path} ${what}.`, { data: { path } });
}
