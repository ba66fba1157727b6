// Bundles a module as a web application's build would, and tells what of Node it asked for on the way.

import { builtinModules } from "node:module";
import { build, type Plugin } from "vite";

export interface Bundle {
  code: string;
  /** `builtin ← importer`, for every Node builtin that was asked for. Empty means that browsers can have it. */
  builtins: string[];
}

const isBuiltin = (id: string) => id.startsWith("node:") || builtinModules.includes(id);

export async function bundleForBrowser(entry: string): Promise<Bundle> {
  const builtins: string[] = [];
  const watch: Plugin = {
    name: "watch-builtins",
    enforce: "pre",
    resolveId(id, importer) {
      if (!isBuiltin(id)) return null;
      builtins.push(`${id} ← ${importer}`);
      // Left as it is, so that the build ends and every one is seen, not only the first.
      return { id, external: true };
    },
  };
  const result = await build({
    configFile: false,
    logLevel: "silent",
    plugins: [watch],
    // An application's build does this by itself, a library's does not; React asks for it.
    define: { "process.env.NODE_ENV": '"production"' },
    build: { write: false, target: "es2022", lib: { entry, formats: ["iife"], name: "bundle" } },
  });
  if (!Array.isArray(result) || !result[0]) throw new Error("vite gave no bundle.");
  return { code: result[0].output[0].code, builtins };
}
