// Runs the linter with this house's own settings on a small house.

import { spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { house, withTree } from "./tree.ts";

export interface Finding {
  file: string;
  rule: string;
  severity: "error" | "warning" | "info";
  message: string;
}

export function lint(files: Record<string, string>): Promise<{ findings: Finding[]; failed: boolean }> {
  return withTree(files, (tree) => {
    for (const name of ["biome.json", ".gitignore", "scripts"]) {
      cpSync(join(house, name), join(tree, name), { recursive: true });
    }
    const biome = createRequire(import.meta.url).resolve("@biomejs/biome/bin/biome");
    const command = [biome, "lint", "--reporter=json", "--max-diagnostics=none", "src"];
    const { stdout, status } = spawnSync(process.execPath, command, { cwd: tree, encoding: "utf8" });
    const findings = JSON.parse(stdout).diagnostics.map(
      (it: { location: { path: string }; category: string; severity: Finding["severity"]; message: string }) => ({
        file: it.location.path,
        rule: it.category.replace(/^lint\//, ""),
        severity: it.severity,
        message: it.message,
      }),
    );
    return { findings, failed: status !== 0 };
  });
}
