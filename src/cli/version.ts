import { readFileSync } from "node:fs";

/** The version in Bough's package.json, searched upwards, since bundled code may be at another depth. */
export function packageVersion(): string {
  for (let folder = new URL("./", import.meta.url); ; folder = new URL("../", folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
      if (name === "bough") return version;
    } catch {
      // Not here.
    }
    if (folder.pathname === "/" || folder.href === new URL("../", folder).href) return "unknown";
  }
}
