// The tarball as npm would publish it, and what may be in it. The list of what may is closed, so that a new kind of file is
// a decision.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** Packs without running lifecycle scripts; returns npm's own description of the result and where it is. */
export function pack(folder, into) {
  const command = ["pack", "--json", "--ignore-scripts", "--pack-destination", into];
  const { status, stdout, stderr } = spawnSync("npm", command, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm pack failed:\n${stderr}`);
  const [{ filename, files, size, unpackedSize }] = JSON.parse(stdout);
  return { path: join(into, filename), files: files.map(({ path }) => path), size, unpackedSize };
}

const built = /^dist\/.+\.(js|js\.map|d\.ts)$/;
/** Studio, as scripts/studio.mjs makes it: a page, and files with a hash in their names. */
const studio = /^dist\/studio\/(index\.html|assets\/[\w-]+\.(js|css|svg|woff2))(\.br|\.gz)?$/;
const papers = ["package.json", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"];
const testLike = /(^|\/)(tests?|testing|__tests__|fixtures|mocks?|golden)\/|\.(test|spec|bench)\./;

function problemOf(file) {
  if (/\.test\.|\.spec\./.test(file)) return `${file} is a test.`;
  if (testLike.test(file) && !file.startsWith("dist/testing/")) return `${file} is test code outside dist/testing/.`;
  if (/\.tsx?$/.test(file) && !file.endsWith(".d.ts")) return `${file} is a source; only what is built is published.`;
  if (!papers.includes(file) && !built.test(file) && !studio.test(file))
    return `${file} has no business in the package; exclude it in "files".`;
}

export function checkContents(folder, manifest, { files, size, unpackedSize }) {
  const missing = manifest.files
    .filter((file) => !/[*!]/.test(file) && !existsSync(join(folder, file)))
    .map((file) => `"files" lists ${file}, which does not exist.`);
  const problems = [...missing, ...files.map(problemOf).filter((problem) => problem !== undefined)];
  const kb = (bytes) => `${(bytes / 1024).toFixed(0)} kB`;
  return { name: "tarball", note: `${files.length} files, ${kb(size)} packed, ${kb(unpackedSize)} unpacked`, problems };
}
