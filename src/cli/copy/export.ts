// A session as lines of JSON: the session, then each branch followed by its facts, checkpoints and content, then an end
// with the hash of all of it. Facts are kept as the text that the store has, so that they come back byte for byte.

import { toJson } from "../terminal.ts";
import { digestSession } from "./digest.ts";
import { branchesOf, needSession, ownContent, ownFacts, type Source } from "./source.ts";

export const exportFormat = 1;

export async function exportSession(
  source: Source,
  sessionId: string,
  write: (line: string) => Promise<void>,
): Promise<void> {
  const line = (type: string, value: object) => write(toJson({ type, ...value }));
  await line("session", { format: exportFormat, ...(await needSession(source, sessionId)) });
  for (const branch of await branchesOf(source, sessionId)) {
    const { sessionId: _, ...row } = branch;
    await line("branch", row);
    for await (const page of ownFacts(source, branch)) for (const fact of page) await line("fact", fact);
    for (const checkpoint of [...(await source.listCheckpoints(branch))].reverse())
      await line("checkpoint", checkpoint);
    for (const record of await ownContent(source, branch)) {
      const pieces: Uint8Array[] = [];
      for await (const piece of source.content?.read(branch, record.id) ?? []) pieces.push(piece);
      await line("content", { ...record, bytes: Buffer.concat(pieces).toString("base64") });
    }
  }
  // Hashed from the source as it is now: a session that changed during the export fails its import.
  await line("end", { sha256: (await digestSession(source, sessionId)).sha256 });
}
