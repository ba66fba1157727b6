// Doctor's findings about file permissions: of a store, and of the configuration in the working directory.

import { existsSync, lstatSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { whyForeign } from "../base/foreign.ts";
import { configNames } from "./config/load.ts";
import { ownFolder } from "./token-file.ts";

export interface Finding {
  readonly what: string;
  readonly status: "ok" | "warning" | "problem";
  readonly detail: string;
  /** How to fix it. */
  readonly advice?: string;
}

const forOthers = 0o077;

/** Files of a store that other users can read or write. A private folder protects the files in it. */
export function fileFindings(place: { kind: "sqlite" | "file"; path: string } | undefined): Finding[] {
  if (!place || process.getuid === undefined) return [];
  const { kind, path } = place;
  const files = kind === "file" ? [path] : [path, `${path}-wal`, `${path}-shm`];
  const folder = dirname(path) === resolve(ownFolder) ? [dirname(path), ...tokenFiles()] : [];
  const open = [...folder, ...files].filter((each) => existsSync(each) && (statSync(each).mode & forOthers) !== 0);
  const foreign = files.filter((each) => existsSync(each) && whyForeign(statSync(each)) !== undefined);
  return [
    ...open.map((each): Finding => {
      const mode = statSync(each).isDirectory() ? "700" : "600";
      return {
        what: "Files",
        status: "warning",
        detail: `${shown(each)} is accessible to other users (mode ${(statSync(each).mode & 0o777).toString(8)})`,
        advice: `Restrict it to its owner: chmod ${mode} ${shown(each)}`,
      };
    }),
    ...foreign.map((each): Finding => {
      return { what: "Files", status: "warning", detail: `${shown(each)} ${whyForeign(statSync(each))}` };
    }),
  ];
}

function tokenFiles(): string[] {
  const folder = resolve(ownFolder);
  return readdirSync(folder)
    .filter((name) => name.startsWith("token-"))
    .map((name) => join(folder, name));
}

/** Configuration files in the working directory that `serve` and `chat` refuse. */
export function configFindings(): Finding[] {
  return configNames
    .filter((name) => existsSync(name))
    .flatMap((name): Finding[] => {
      const why = whyForeign({ uid: lstatSync(name).uid, mode: 0 }) ?? whyForeign(statSync(name));
      if (why === undefined) return [];
      const advice = "bough serve and bough chat refuse to load it. Fix its owner and mode.";
      return [{ what: "Config", status: "warning", detail: `${name} ${why}`, advice }];
    });
}

function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near === "" || near.startsWith("..") ? path : near;
}
