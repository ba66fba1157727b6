// The thread in which texts are extracted. One file, one answer, and it ends.

import { parentPort, workerData } from "node:worker_threads";
import { extractText, MissingPackage } from "./extract.ts";
import type { DocumentType } from "./types.ts";

const { bytes, mediaType } = workerData as { bytes: Uint8Array; mediaType: DocumentType };

extractText(bytes, mediaType).then(
  (text) => parentPort?.postMessage({ text }),
  (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    parentPort?.postMessage({ message, isMissing: error instanceof MissingPackage });
  },
);
