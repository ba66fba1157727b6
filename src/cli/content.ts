// Content of a branch, in a store or on a server, for the commands about it.

import type { ArgDef } from "citty";
import { localContent } from "../agent/content-handle.ts";
import { BoughError } from "../base/errors.ts";
import { visible } from "../chat/text.ts";
import { createClient } from "../client/index.ts";
import { openSessions } from "../sessions/index.ts";
import { NamespacedStore } from "../stores/namespaced/index.ts";
import type { ContentBody, ContentHandle } from "../wire/index.ts";
import { storeArg } from "./command.ts";
import { serverArgs, serverAt } from "./server.ts";
import { chooseStore, withStore } from "./store.ts";

/** Arguments of commands about the content of a branch. */
export const contentArgs = {
  session: { type: "positional", valueHint: "SESSION", required: true, description: "the session's id" },
} as const satisfies Record<string, ArgDef>;

/** Their options. */
export const contentOptions = {
  branch: { type: "string", valueHint: "ID", description: "the branch; needed if the session has several" },
  ...serverArgs,
  store: { ...storeArg.store, description: "without --url: the store (default: BOUGH_STORE, else ./.bough/bough.db)" },
} as const satisfies Record<string, ArgDef>;

/** Files by their id, the beginning of it, or their name. */
export const fileWord = {
  file: {
    type: "positional",
    valueHint: "FILE",
    required: true,
    description: "its name, its id or the beginning of its id",
  },
} as const satisfies Record<string, ArgDef>;

interface ContentWords {
  readonly session: string;
  readonly branch?: string | undefined;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly store?: string | undefined;
}

/** Opens the content of the branch that the arguments name. */
export async function withContent<T>(args: ContentWords, work: (content: ContentHandle) => Promise<T>): Promise<T> {
  const { session: sessionId, branch, store } = args;
  const server = serverAt(args, { store });
  if (server) {
    // Content belongs to branches; no agent has a part in it.
    const client = createClient({ ...server, agentId: "-" });
    const branchId = branch ?? onlyOf(sessionId, await client.listBranches(sessionId));
    return work(client.branch({ sessionId, branchId }).content);
  }
  return withStore(chooseStore(store), {}, async (opened) => {
    // Sessions that a server reserves for itself are not available here.
    const sessions = await openSessions(new NamespacedStore(opened, ""));
    const branchId = branch ?? onlyOf(sessionId, await sessions.listBranches(sessionId));
    return work(localContent(sessions, { sessionId, branchId }));
  });
}

function onlyOf(sessionId: string, branches: readonly { readonly id: string }[]): string {
  const ids = branches.map(({ id }) => id);
  if (ids.length === 1) return ids[0]!;
  const sentence = `Choose a branch with --branch ID. Available: ${ids.map(visible).join(", ")}.`;
  throw new BoughError("branch_ambiguous", sentence, { data: { sessionId, ids } });
}

/** The file that a word names. */
export function findFile(files: readonly ContentBody[], word: string): ContentBody {
  const id = word.replace(/^bough-content:\/\/sha256\//, "");
  const named = files.filter(({ name }) => name === word);
  const found = named.length > 0 ? named : files.filter((file) => id.length >= 4 && file.id.startsWith(id));
  if (found.length === 1) return found[0]!;
  if (found.length === 0) {
    const sentence = `The branch has no file "${word}". bough content ls lists its files.`;
    throw new BoughError("content_not_found", sentence, { data: { file: word } });
  }
  const ids = found.map((file) => file.id);
  const short = ids.map((each) => each.slice(0, 12)).join(", ");
  throw new BoughError("invalid_argument", `"${word}" names several files; use the id: ${short}.`, { data: { ids } });
}
