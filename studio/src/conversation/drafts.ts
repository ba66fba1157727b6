// What was typed and not sent, for each branch, as long as the tab lives.

const prefix = "bough.draft.";

export function readDraft(key: string): string {
  return sessionStorage.getItem(prefix + key) ?? "";
}

export function keepDraft(key: string, text: string): void {
  if (text === "") sessionStorage.removeItem(prefix + key);
  else sessionStorage.setItem(prefix + key, text);
}
