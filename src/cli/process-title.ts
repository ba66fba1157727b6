// What other users of the machine see of a command in the list of processes: its words without secrets.

import { maskUrl } from "../base/mask-url.ts";

const secretOptions = new Set(["--token"]);

/** The words of a command as they may be shown. */
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

/** Takes secrets off the list of processes. Between its start and this the words are to be seen: use the environment. */
export function hideSecrets(argv: readonly string[]): void {
  process.title = ["bough", ...shownWords(argv)].join(" ");
}
