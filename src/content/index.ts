// Content: what bytes are and what can be made of them. It stores nothing (sessions/) and knows no branch.

export { canExtract, extractInWorker } from "./extract/run.ts";
export { type FetchedFile, type FetchRules, fetchUrl } from "./fetch/fetch-url.ts";
export { type GivenFile, peekBytes, readGiven } from "./given.ts";
export { decodeText, isTextType } from "./text.ts";
