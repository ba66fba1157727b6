// Files that a request names instead of carrying them: by an id at the provider, or by an address that the provider opens.
//   Elsewhere-1. The name of a file stays the same for as long as it is good: another one would be another prompt to the
//       provider's cache. So ids are noted with the content, and addresses are signed for long (log/blobs.ts).
//   Elsewhere-2. Names are never part of the log: they expire, and are nothing to forks, exports and other tenants.

import type { JsonObject } from "../../base/json.ts";
import type { BranchRef } from "../../log/store.ts";
import type { LanguageModel } from "../../models/index.ts";
import { contentUrl, findContent, readContent, updateContent } from "../../sessions/content.ts";
import type { Context } from "../../sessions/context.ts";
import type { ProviderFiles } from "./options.ts";
import { type Elsewhere, isFresh, type StoredFile } from "./stored.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** An address of the bytes, where they are kept in a place that has such. */
export async function addressOf(context: Context, ref: BranchRef, id: string): Promise<Elsewhere | undefined> {
  const found = await contentUrl(context, ref, id, { expiresMs: dayMs });
  return found && { data: { type: "url", url: found.url }, expiresAt: found.expiresAt };
}

/** The services that files are uploaded to, and what they are told beside the file. */
export interface Uploading {
  readonly services: readonly ProviderFiles[];
  readonly options?: JsonObject;
  readonly signal?: AbortSignal;
}

/** The file at the model's provider: known from an earlier call, or uploaded now. Undefined when none is meant for it. */
export async function referTo(
  { context, ref }: { readonly context: Context; readonly ref: BranchRef },
  { services, options, signal }: Uploading,
  { file, model }: { readonly file: StoredFile; readonly model: LanguageModel },
): Promise<Elsewhere | undefined> {
  const service = services.find(({ provider }) => familyOf(provider) === familyOf(model.provider));
  if (!service) return undefined;
  const family = familyOf(service.provider);
  const known = (await findContent(context, ref, file.id)).provider?.[family] as unknown as NotedReference | undefined;
  if (known && isFresh(known, context.clock.now())) return asElsewhere(known);
  const { mediaType, name } = file;
  const result = await service.uploadFile({
    data: { type: "data", data: await readContent(context, ref, file.id) },
    mediaType,
    ...(name !== undefined && { filename: name }),
    ...(options && { providerOptions: options }),
    ...(signal && { abortSignal: signal }),
  });
  const { providerReference: reference, expiresAt } = result;
  const noted = { reference, ...(expiresAt && { expiresAt: expiresAt.getTime() }) };
  await updateContent(context, ref, file.id, { provider: { [family]: noted } as unknown as JsonObject });
  return asElsewhere(noted);
}

/** Forgets what a provider knows the content by: it is not there any more. */
export async function forgetReference(
  context: Context,
  ref: BranchRef,
  { id, model }: { readonly id: string; readonly model: LanguageModel },
): Promise<void> {
  await updateContent(context, ref, id, { provider: { [familyOf(model.provider)]: null } });
}

interface NotedReference {
  readonly reference: Readonly<Record<string, string>>;
  readonly expiresAt?: number;
}

function asElsewhere({ reference, expiresAt }: NotedReference): Elsewhere {
  return { data: { type: "reference", reference }, ...(expiresAt !== undefined && { expiresAt }) };
}

/** `openai` of `openai.responses` and of `openai.files`. */
function familyOf(provider: string): string {
  return provider.split(".")[0]!;
}
