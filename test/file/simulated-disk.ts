// A disk in memory that forgets. What was not synced when the power goes is lost, kept, or kept in part, block by block and
// name by name, as chance has it: every state that an honest disk may be found in.
//
//   A file's bytes are safe once datasync() resolved after they were written. A name in a directory is safe once
//   syncDirectory() resolved after it changed; a rename between two directories when both were synced. Nothing else is.

import type { Files } from "../../src/stores/file/index.ts";

export type Chance = () => number;

/** Numbers in [0, 1) that are the same for the same seed. */
export function seeded(seed: number): Chance {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

interface File {
  data: Buffer;
  safe: Buffer;
  pending: ({ at: number; bytes: Buffer } | { size: number })[];
}

interface Directory {
  names: Map<string, Node>;
  safe: Map<string, Node>;
}

type Node = File | Directory;

/** Changes of names that happen together, and the directories that are still to be synced for them to be safe. */
interface Rename {
  changes: { directory: Directory; name: string; node: Node | undefined }[];
  unsynced: Set<Directory>;
}

class PowerLost extends Error {
  readonly code = "EPOWER";
}

const block = 512;
const isDirectory = (node: Node | undefined): node is Directory => node !== undefined && "names" in node;
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

export class SimulatedDisk implements Files {
  /** Power goes before this call; calls are counted from the start. */
  cutAt = Number.POSITIVE_INFINITY;
  calls = 0;
  #root: Directory;
  #renames: Rename[] = [];
  #handles = new Map<number, File>();
  #nextHandle = 1;
  #locked = false;

  constructor(root: Directory = emptyDirectory()) {
    this.#root = root;
  }

  get isOff(): boolean {
    return this.calls >= this.cutAt;
  }

  /** What is found when the power is back: `keep` of what was not safe is there, by chance. */
  afterPowerLoss(chance: Chance, keep: number): SimulatedDisk {
    const names = new Map<Directory, Map<string, Node>>();
    const namesOf = (directory: Directory) => {
      if (!names.has(directory)) names.set(directory, new Map(directory.safe));
      return names.get(directory)!;
    };
    for (const { changes, unsynced } of this.#renames) {
      if (unsynced.size > 0 && chance() >= keep) continue;
      for (const { directory, name, node } of changes) {
        if (node) namesOf(directory).set(name, node);
        else namesOf(directory).delete(name);
      }
    }
    const copies = new Map<Node, Node>();
    const copy = (node: Node): Node => {
      const known = copies.get(node);
      if (known) return known;
      if (!isDirectory(node)) {
        const data = survived(node, chance, keep);
        const file: File = { data, safe: Buffer.from(data), pending: [] };
        copies.set(node, file);
        return file;
      }
      const directory = emptyDirectory();
      copies.set(node, directory);
      for (const [name, child] of namesOf(node)) directory.names.set(name, copy(child));
      directory.safe = new Map(directory.names);
      return directory;
    };
    return new SimulatedDisk(copy(this.#root) as Directory);
  }

  checkOwner(): void {}

  open(path: string, how: "existing" | "create" | "new"): number {
    this.#step();
    let node = this.#find(path);
    if (isDirectory(node)) throw errno("EISDIR");
    if (node && how === "new") throw errno("EEXIST");
    if (!node) {
      if (how === "existing") throw errno("ENOENT");
      node = { data: Buffer.alloc(0), safe: Buffer.alloc(0), pending: [] };
      this.#rename([[path, node]]);
    }
    this.#handles.set(this.#nextHandle, node);
    return this.#nextHandle++;
  }

  read(handle: number, into: Uint8Array, at: number): number {
    this.#step();
    return this.#file(handle).data.copy(into, 0, at);
  }

  write(handle: number, bytes: Uint8Array, at: number): number {
    this.#step();
    const file = this.#file(handle);
    const written = Buffer.from(bytes);
    file.data = put(file.data, at, written);
    file.pending.push({ at, bytes: written });
    return bytes.length;
  }

  size(handle: number): number {
    this.#step();
    return this.#file(handle).data.length;
  }

  truncate(handle: number, size: number): void {
    this.#step();
    const file = this.#file(handle);
    file.data = resize(file.data, size);
    file.pending.push({ size });
  }

  close(handle: number): void {
    this.#handles.delete(handle);
  }

  async datasync(handle: number): Promise<void> {
    this.#step();
    const file = this.#file(handle);
    const [count, data] = [file.pending.length, Buffer.from(file.data)];
    await tick();
    this.#step();
    file.pending.splice(0, count);
    file.safe = data;
  }

  makeDirectory(path: string): boolean {
    this.#step();
    if (this.#find(path)) return false;
    this.#rename([[path, emptyDirectory()]]);
    return true;
  }

  list(path: string): string[] {
    this.#step();
    const node = this.#find(path);
    return isDirectory(node) ? [...node.names.keys()] : [];
  }

  rename(from: string, to: string): void {
    this.#step();
    const node = this.#find(from);
    if (!node) throw errno("ENOENT");
    const there = this.#find(to);
    if (isDirectory(there) && there.names.size > 0) throw errno("ENOTEMPTY");
    this.#rename([
      [from, undefined],
      [to, node],
    ]);
  }

  link(from: string, to: string): boolean {
    this.#step();
    const node = this.#find(from);
    if (!node) throw errno("ENOENT");
    if (this.#find(to)) return false;
    this.#rename([[to, node]]);
    return true;
  }

  unlink(path: string): void {
    this.#step();
    if (!this.#find(path)) throw errno("ENOENT");
    this.#rename([[path, undefined]]);
  }

  async removeTree(path: string): Promise<void> {
    const node = this.#find(path);
    if (!node) return;
    if (isDirectory(node)) for (const name of [...node.names.keys()]) await this.removeTree(`${path}/${name}`);
    this.#step();
    this.#rename([[path, undefined]]);
    await tick();
  }

  async syncDirectory(path: string): Promise<void> {
    this.#step();
    const directory = this.#find(path);
    if (!isDirectory(directory)) throw errno("ENOENT");
    const covered = [...this.#renames];
    await tick();
    this.#step();
    for (const rename of covered) rename.unsynced.delete(directory);
    this.#settle();
  }

  async lock(): Promise<(() => void) | undefined> {
    if (this.#locked) return undefined;
    this.#locked = true;
    return () => {
      this.#locked = false;
    };
  }

  /** Changes that are safe, with nothing unsafe before them, need not be remembered one by one. */
  #settle(): void {
    while (this.#renames[0]?.unsynced.size === 0) {
      for (const { directory, name, node } of this.#renames.shift()!.changes) {
        if (node) directory.safe.set(name, node);
        else directory.safe.delete(name);
      }
    }
  }

  #rename(changed: [path: string, node: Node | undefined][]): void {
    const changes = changed.map(([path, node]) => ({ ...this.#place(path), node }));
    for (const { directory, name, node } of changes) {
      if (node) directory.names.set(name, node);
      else directory.names.delete(name);
    }
    this.#renames.push({ changes, unsynced: new Set(changes.map(({ directory }) => directory)) });
  }

  #place(path: string): { directory: Directory; name: string } {
    const steps = path.split("/").filter(Boolean);
    const name = steps.pop()!;
    const directory = this.#find(steps.join("/"));
    if (!isDirectory(directory)) throw errno("ENOENT");
    return { directory, name };
  }

  #find(path: string): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const step of path.split("/").filter(Boolean)) {
      if (!isDirectory(node)) return undefined;
      node = node.names.get(step);
    }
    return node;
  }

  #file(handle: number): File {
    const file = this.#handles.get(handle);
    if (!file) throw errno("EBADF");
    return file;
  }

  #step(): void {
    if (++this.calls >= this.cutAt) throw new PowerLost("The power is off.");
  }
}

function emptyDirectory(): Directory {
  return { names: new Map(), safe: new Map() };
}

function survived({ safe, pending }: File, chance: Chance, keep: number): Buffer {
  let data: Buffer = Buffer.from(safe);
  for (const change of pending) {
    if ("size" in change) {
      if (chance() < keep) data = resize(data, change.size);
      continue;
    }
    const { at, bytes } = change;
    for (let from = 0; from < bytes.length; ) {
      const end = Math.min(bytes.length, (Math.floor((at + from) / block) + 1) * block - at);
      if (chance() < keep) data = put(data, at + from, bytes.subarray(from, end));
      from = end;
    }
  }
  return data;
}

function put(data: Buffer, at: number, bytes: Buffer): Buffer {
  const result = data.length >= at + bytes.length ? Buffer.from(data) : resize(data, at + bytes.length);
  bytes.copy(result, at);
  return result;
}

function resize(data: Buffer, size: number): Buffer {
  return size <= data.length
    ? Buffer.from(data.subarray(0, size))
    : Buffer.concat([data, Buffer.alloc(size - data.length)]);
}

function errno(code: string): Error {
  return Object.assign(new Error(code), { code });
}
