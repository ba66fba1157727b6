// Finding and reading a configuration file. TypeScript is Node's business where Node can do it, and jiti's elsewhere.

import { existsSync, lstatSync, readFileSync, statSync } from "node:fs";
import { extname, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { BoughError } from "../../base/errors.ts";
import { whyForeign } from "../../base/foreign.ts";
import { misuse } from "../command.ts";

export const configNames = ["ts", "mts", "js", "mjs", "json"].map((ending) => `bough.config.${ending}`);

/** A file and what it says, not looked at yet. */
export interface LoadedFile {
  /** As a person would name it from here. */
  readonly file: string;
  readonly isJson: boolean;
  readonly value: unknown;
}

/** The configuration that was named, else the one in the working directory, if there is one. */
export async function loadConfigFile(named: string | undefined): Promise<LoadedFile | undefined> {
  const path = named === undefined ? findConfig() : resolve(named);
  if (path === undefined) return undefined;
  const file = relative(process.cwd(), path) || path;
  if (!existsSync(path)) throw misuse(`There is no configuration file ${file}.`);
  refuseForeign(path, file);
  const isJson = extname(path) === ".json";
  return { file, isJson, value: isJson ? readJson(path, file) : await importDefault(path, file) };
}

/** Which of two is meant, nobody can tell. */
function findConfig(): string | undefined {
  const found = configNames.filter((name) => existsSync(name));
  if (found.length > 1) throw misuse(`There are ${found.join(" and ")}; say which with --config FILE.`);
  return found[0] === undefined ? undefined : resolve(found[0]);
}

/** A configuration is a program, or says who is let in: neither is taken from another user. Whose a link is counts, too. */
function refuseForeign(path: string, file: string): void {
  const why = whyForeign({ uid: lstatSync(path).uid, mode: 0 }) ?? whyForeign(statSync(path));
  if (why === undefined) return;
  throw misuse(`${file} ${why}, so it is not loaded. Make it your own, or name another with --config FILE.`, { file });
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
  if (loaded.default === undefined) throw misuse(`${file} has no default export: export default defineConfig({ … }).`);
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
    const message = `${file} needs Node 22.18 or newer, or a package: npm install jiti`;
    throw new BoughError("dependency_missing", message, { data: { package: name }, cause });
  });
  // What Node can load itself it does, so that packages are there once; nothing is written to disk.
  const jiti = createJiti(import.meta.url, { tryNative: true, fsCache: false });
  return (path) => jiti.import(path);
}

function broken(file: string, error: unknown): BoughError {
  const said = error instanceof Error ? error.message : String(error);
  const why = said.replace(/\nRequire stack:.*/s, "").replace(/\s+/g, " ");
  return new BoughError("invalid_argument", `${file} can't be loaded: ${why}`, { data: { file }, cause: error });
}
