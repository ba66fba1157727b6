// Finds and loads a configuration file. TypeScript is loaded by Node where it can, otherwise by jiti.

import { existsSync, lstatSync, readFileSync, statSync } from "node:fs";
import { extname, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { BoughError } from "../../base/errors.ts";
import { whyForeign } from "../../base/foreign.ts";
import { misuse } from "../command.ts";

export const configNames = ["ts", "mts", "js", "mjs", "json"].map((ending) => `bough.config.${ending}`);

/** A file and its content, not checked yet. */
export interface LoadedFile {
  /** The path, relative to the working directory where possible. */
  readonly file: string;
  readonly isJson: boolean;
  readonly value: unknown;
}

/** The configuration that was given, else the one in the working directory, if any. */
export async function loadConfigFile(named: string | undefined): Promise<LoadedFile | undefined> {
  const path = named === undefined ? findConfig() : resolve(named);
  if (path === undefined) return undefined;
  const file = relative(process.cwd(), path) || path;
  if (!existsSync(path)) throw misuse(`The configuration file ${file} does not exist.`);
  refuseForeign(path, file);
  const isJson = extname(path) === ".json";
  return { file, isJson, value: isJson ? readJson(path, file) : await importDefault(path, file) };
}

/** Several files are ambiguous. */
function findConfig(): string | undefined {
  const found = configNames.filter((name) => existsSync(name));
  if (found.length > 1) throw misuse(`Found ${found.join(" and ")}. Choose one with --config FILE.`);
  return found[0] === undefined ? undefined : resolve(found[0]);
}

/** A configuration is code and decides who gets access, so another user's is refused. The owner of a link counts, too. */
function refuseForeign(path: string, file: string): void {
  const why = whyForeign({ uid: lstatSync(path).uid, mode: 0 }) ?? whyForeign(statSync(path));
  if (why === undefined) return;
  throw misuse(`${file} ${why}, so it is not loaded. Fix its owner and mode, or choose another with --config FILE.`, {
    file,
  });
}

function readJson(path: string, file: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw broken(file, error);
  }
}

async function importDefault(path: string, file: string): Promise<unknown> {
  const isTypeScript = /\.[cm]?ts$/.test(path);
  const load = isTypeScript && !nodeReadsTypeScript() ? await jitiImport(file) : nativeImport;
  const loaded = await load(path).catch((error: unknown) => {
    throw broken(file, error);
  });
  if (loaded.default === undefined)
    throw misuse(`${file} has no default export. Add: export default defineConfig({ … })`);
  return loaded.default;
}

type Import = (path: string) => Promise<{ readonly default?: unknown }>;

const nativeImport: Import = (path) => import(pathToFileURL(path).href);

function nodeReadsTypeScript(): boolean {
  return Boolean((process.features as { typescript?: unknown }).typescript);
}

async function jitiImport(file: string): Promise<Import> {
  const name = "jiti";
  const { createJiti } = await (import(name) as Promise<typeof import("jiti")>).catch((cause: unknown) => {
    const message = `${file} needs Node 22.18 or newer, or the package jiti: npm install jiti`;
    throw new BoughError("dependency_missing", message, { data: { package: name }, cause });
  });
  // Node loads what it can, so that packages are loaded only once; nothing is written to disk.
  const jiti = createJiti(import.meta.url, { tryNative: true, fsCache: false });
  return (path) => jiti.import(path);
}

function broken(file: string, error: unknown): BoughError {
  const said = error instanceof Error ? error.message : String(error);
  const why = said.replace(/\nRequire stack:.*/s, "").replace(/\s+/g, " ");
  return new BoughError("invalid_argument", `${file} can't be loaded: ${why}`, { data: { file }, cause: error });
}
