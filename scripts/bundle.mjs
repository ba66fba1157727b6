// Makes dist/: the declarations are the compiler's (tsconfig.build.json), the code is bundled here, one file for each subpath
// and a few that they share. A hundred small modules take four times as long to load as one.

import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Subpaths, commands and internal imports by the name of their file in dist/: "index", "stores/file/index", "cli/main" … */
const input = Object.fromEntries(
  [
    ...Object.values(manifest.exports)
      .filter((target) => typeof target === "object")
      .map(({ default: file }) => file),
    ...Object.values(manifest.bin ?? {}),
    // What a platform has instead of another's; patterns lead to subpaths.
    ...Object.values(manifest.imports)
      .flatMap((targets) => Object.values(targets))
      .filter((file) => !file.includes("*")),
  ]
    .map((file) => file.replace(/^\.\/dist\//, "").replace(/\.js$/, ""))
    .map((name) => [name, join(root, "src", `${name}.ts`)]),
);

// What Node alone can have is an address that package.json resolves, so that bundles for other platforms leave it out. By file
// and import: the address.
const nodeOnly = new Map([
  ...["file", "sqlite", "postgres", "redis"].map((name) => [
    `src/sessions/open-store.ts ../stores/${name}/index.ts`,
    `#stores/${name}`,
  ]),
  ["src/server/serve.ts ./node.ts", "#listen"],
]);

const bundle = await rolldown({
  input,
  plugins: [
    {
      name: "node-only",
      resolveId(id, importer) {
        const address = importer && nodeOnly.get(`${importer.slice(root.length + 1)} ${id}`);
        return address ? { id: address, external: true } : null;
      },
    },
  ],
  // Everything that is installed beside us stays where it is.
  external: (id) => !/^[./]/.test(id),
  platform: "node",
  logLevel: "warn",
});
const { output } = await bundle.write({
  dir: dist,
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  sourcemap: true,
});
await bundle.close();
// npm does this when it installs; in a checkout the commands are made afterwards.
for (const file of Object.values(manifest.bin ?? {})) chmodSync(join(root, file), 0o755);

// Nobody else deletes: what was removed or renamed would be published for ever.
mkdirSync(dist, { recursive: true });
const made = new Set(output.map(({ fileName }) => fileName));
const sources = new Set(filesBelow(join(root, "src")).map((file) => file.replace(/\.tsx?$/, ".d.ts")));
for (const file of filesBelow(dist)) {
  // scripts/studio.mjs clears its own.
  if (file.startsWith("studio/")) continue;
  const isOurs = file.endsWith(".d.ts") ? sources.has(file) : made.has(file);
  if (!isOurs) rmSync(join(dist, file));
}

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}
