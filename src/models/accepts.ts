// Which files a model's provider package takes, and where. The specification has no field for this, so the packages' own code
// decides: some throw for a type they don't know, some drop the file, and some write its bytes into the prompt as JSON.

import { matchesType } from "../base/media-type.ts";
import type { LanguageModel } from "./port.ts";

/** Where a file stands in a prompt: in what the user said, in a tool's result, or in what the model said. */
export type FilePlace = "user" | "tool" | "assistant";

/** Media types as they are accepted in each place: `image/png`, `image/*`. */
export type AcceptedTypes = Readonly<Record<FilePlace, readonly string[]>>;

const media = ["image/*", "application/pdf"];

const families: readonly { readonly provider: RegExp; readonly types: AcceptedTypes }[] = [
  {
    provider: /^(openai|azure)\.responses$/,
    types: { user: media, tool: media, assistant: [] },
  },
  {
    provider: /^(openai|azure)(\.|$)/,
    types: { user: [...media, "audio/wav", "audio/mpeg", "audio/mp3"], tool: [], assistant: [] },
  },
  {
    provider: /(^|\.)anthropic(\.|$)/,
    types: { user: [...media, "text/plain"], tool: media, assistant: [] },
  },
  {
    provider: /^(google|vertex|googleVertex)(\.|$)/,
    types: { user: [...media, "audio/*", "video/*", "text/*"], tool: media, assistant: media },
  },
  // The scripted model takes everything, so that tests and demos see what they send.
  { provider: /^bough$/, types: { user: ["*/*"], tool: ["*/*"], assistant: ["*/*"] } },
];

/**
 * A package that is not known: what a person sends is tried, because a type that it does not take is refused before anything
 * is sent. Files of tools are not, because many packages would write their bytes into the prompt.
 */
const unknown: AcceptedTypes = { user: [...media, "audio/*", "video/*"], tool: [], assistant: [] };

/** The types that a model's package takes. `user` overrides what is known of what the user may send. */
export function acceptedTypes(
  { provider }: Pick<LanguageModel, "provider">,
  user: readonly string[] | undefined,
): AcceptedTypes {
  const known = families.find((family) => family.provider.test(provider))?.types ?? unknown;
  return user ? { ...known, user } : known;
}

/** Whether a type is one of those accepted. */
export function isAccepted(types: readonly string[], mediaType: string): boolean {
  return types.some((pattern) => matchesType(pattern, mediaType));
}

/** Whether the model's provider fetches this URL itself. */
export async function takesUrl(model: LanguageModel, url: string, mediaType: string): Promise<boolean> {
  const supported = Object.entries((await model.supportedUrls) ?? {});
  return supported.some(
    ([pattern, urls]) =>
      matchesType(pattern, mediaType) && urls.some((each) => new RegExp(each.source, each.flags).test(url)),
  );
}

/** Whether the model's package takes a file by the provider's own reference to it. */
export function takesReference(
  { specificationVersion, provider }: Pick<LanguageModel, "specificationVersion" | "provider">,
  place: FilePlace,
  mediaType: string,
): boolean {
  if (specificationVersion !== "v4" || place !== "user") return false;
  // Chat Completions takes ids of documents alone.
  return !/^(openai|azure)\.chat/.test(provider) || mediaType === "application/pdf";
}

/** A provider package that does not take something says so with this error, before it sends anything. */
export function unsupportedFeature(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < 4 && typeof current === "object" && current !== null; depth++) {
    const { name, functionality, cause } = current as { name?: unknown; functionality?: unknown; cause?: unknown };
    if (name === "AI_UnsupportedFunctionalityError") return String(functionality ?? "");
    current = cause;
  }
  return undefined;
}
