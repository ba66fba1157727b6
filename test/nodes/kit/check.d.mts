import type { Store } from "bough";

export interface Note {
  readonly executed?: string;
  readonly sessionId?: string;
  readonly life: number;
}

export function checkHistory(store: Store, sessionIds: readonly string[], notes: readonly Note[]): Promise<string[]>;
export function readNotes(folder: string): Note[];
