// The subpaths of the package as package.json promises them, read from what was built: what users get, not what we wrote.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const house = new URL("../../", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("package.json", house), "utf8"));

export interface Subpath {
  /** What users import: `bough`, `bough/events`. */
  name: string;
  /** The module it leads to, as a URL and as a path. */
  url: string;
  path: string;
  /** Its declarations. */
  types: string;
}

export const subpaths: Subpath[] = Object.entries<string | { default: string; types: string }>(
  manifest.exports,
).flatMap(([key, target]) => {
  if (typeof target === "string") return [];
  const url = new URL(target.default, house);
  const types = fileURLToPath(new URL(target.types, house));
  return [{ name: key.replace(/^\./, manifest.name), url: url.href, path: fileURLToPath(url), types }];
});

/** The names a subpath has at run time, sorted. Types leave no trace there. */
export async function runtimeNames({ name, url, path }: Subpath): Promise<string[]> {
  if (!existsSync(path)) throw new Error(`${name} is not built: ${path} is missing. Run npm run build.`);
  return Object.keys(await import(/* @vite-ignore */ url)).sort();
}

/** A name that a subpath declares: a value, or only a type. */
export interface Declared {
  readonly name: string;
  readonly isValue: boolean;
  /** Where it is declared, below dist/. */
  readonly file: string;
  /** Its JSDoc. */
  readonly sentence: string;
  /** It is exported as a type and is a value where it is declared: it completes in an editor and fails to compile. */
  readonly isGhost: boolean;
}

/** The names that each subpath declares, read from what was built. */
export function declaredNames(): Map<string, readonly Declared[]> {
  const options = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
  const program = ts.createProgram(
    subpaths.map(({ types }) => types),
    { ...options, target: ts.ScriptTarget.ES2022, skipLibCheck: true, noEmit: true },
  );
  const checker = program.getTypeChecker();
  return new Map(
    subpaths.map(({ name, types }) => {
      const module = checker.getSymbolAtLocation(program.getSourceFile(types)!)!;
      const declared = checker.getExportsOfModule(module).map((symbol) => declaredAs(checker, symbol));
      return [name, declared.sort((a, b) => (a.name < b.name ? -1 : 1))];
    }),
  );
}

function declaredAs(checker: ts.TypeChecker, symbol: ts.Symbol): Declared {
  const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
  const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
  const hasValue = (target.flags & ts.SymbolFlags.Value) !== 0;
  const isType = (target.flags & ts.SymbolFlags.Type) !== 0;
  const isTypeOnly = (symbol.declarations ?? []).some(
    (each) => ts.isExportSpecifier(each) && (each.isTypeOnly || each.parent.parent.isTypeOnly),
  );
  const [first] = target.declarations ?? [];
  return {
    name: symbol.name,
    isValue: hasValue && !isTypeOnly,
    file: first?.getSourceFile().fileName.replace(/^.*\/dist\//, "") ?? "",
    sentence: ts.displayPartsToString(target.getDocumentationComment(checker)),
    isGhost: hasValue && isTypeOnly && !isType,
  };
}
