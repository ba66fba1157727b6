// The command line that other users of the machine see in the process list, without secrets.

import { maskUrl } from "../base/mask-url.ts";

const secretOptions = new Set(["--token"]);

/** A command's arguments without secrets. */
export function shownWords(argv: readonly string[]): string[] {
  return argv.map((word, i) => {
    const [name = "", value] = splitOnce(word);
    if (secretOptions.has(argv[i - 1] ?? "")) return "***";
    if (value !== undefined && secretOptions.has(name)) return `${name}=***`;
    if (value?.includes("://") && name.startsWith("--")) return `${name}=${maskUrl(value)}`;
    return word.includes("://") ? maskUrl(word) : word;
  });
}

function splitOnce(word: string): [string, string?] {
  const at = word.indexOf("=");
  return at === -1 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

/** Removes secrets from the process list. They are visible until this runs, so prefer environment variables. */
export function hideSecrets(argv: readonly string[]): void {
  process.title = ["bough", ...shownWords(argv)].join(" ");
}
