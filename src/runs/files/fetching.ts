// Fetching files from the web for a run, where the agent allows it.

import type { Clock } from "../../base/clock.ts";
import { fetchUrl } from "../../content/index.ts";
import type { FileFetching } from "../../sessions/files.ts";
import type { Emitter } from "../emit.ts";
import { type Redacting, tellError } from "../redact-errors.ts";
import type { FilePlan } from "./options.ts";

/** What a run that fetches files has. */
export interface Fetching extends Redacting {
  readonly files: FilePlan;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly emitter: Emitter;
}

/** A file that can't be fetched is told; the address stays in its place, and the model gets that or a note. */
export function fetchingOf({ files, clock, signal, emitter, ...redacting }: Fetching): { fetching?: FileFetching } {
  const { fetchUrls: rules } = files;
  if (!rules) return {};
  return {
    fetching: {
      fetch: (url, mediaType) => fetchUrl(url, mediaType, { rules, clock, signal }),
      onFail: (error) => {
        signal.throwIfAborted();
        emitter.live({ type: "content-fail", error: tellError(redacting, error) });
      },
    },
  };
}
