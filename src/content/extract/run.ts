// Runs an extraction in a thread of its own, with little memory and little time: files come from strangers.

import { alarm, type Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { nodeModule } from "../../base/node.ts";
import { type DocumentType, isDocumentType } from "./types.ts";

const timeMs = 30_000;
const memory = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 64, stackSizeMb: 8 };

/** Whether the text of such files can be extracted here. */
export function canExtract(mediaType: string): mediaType is DocumentType {
  return isDocumentType(mediaType) && nodeModule("node:worker_threads") !== undefined;
}

type Answer = { readonly text: string } | { readonly message: string; readonly isMissing: boolean };

/** The text of a file; throws when it has none, takes too long, or needs a package that is not installed. */
export function extractInWorker(bytes: Uint8Array, mediaType: DocumentType, clock: Clock): Promise<string> {
  const { Worker } = nodeModule<typeof import("node:worker_threads")>("node:worker_threads")!;
  const { createRequire } = nodeModule<typeof import("node:module")>("node:module")!;
  const worker = new Worker(createRequire(import.meta.url).resolve("#extract"), {
    workerData: { bytes, mediaType },
    resourceLimits: memory,
    // What a package prints about a strange file is nothing to the program's output.
    stdout: true,
    stderr: true,
  });
  return new Promise<string>((resolve, reject) => {
    const cancel = alarm(clock, timeMs, () => end(failed(`Reading the text took longer than ${timeMs / 1000} s.`)));
    const end = (error: BoughError | undefined, text = "") => {
      cancel();
      void worker.terminate();
      if (error) reject(error);
      else resolve(text);
    };
    worker.once("message", (answer: Answer) => {
      if ("text" in answer) end(undefined, answer.text);
      else end(answer.isMissing ? new BoughError("dependency_missing", answer.message) : failed(answer.message));
    });
    worker.once("error", (error) => end(failed(error.message)));
    worker.once("exit", () => end(failed("Reading the text ended without an answer.")));
  });
}

function failed(message: string): BoughError {
  return new BoughError("limit_exceeded", message);
}
