// Sending an upload: in one request, or in parts of which a few travel at a time.

import { BoughError } from "../../base/errors.ts";
import type { Bucket, BucketRequest } from "./bucket.ts";
import type { Spool } from "./spool.ts";
import { blocksOf, escapeXml, fieldOf } from "./xml.ts";

export const partBytes = 8 * 1024 * 1024;
const atOnce = 3;
const mostParts = 10_000;
const mostCompletions = 3;

export interface Upload {
  readonly bucket: Bucket;
  readonly name: string;
  readonly spool: Spool;
  /** What is noted with the object; its SHA-256 among it. */
  readonly notes: Readonly<Record<string, string>>;
  readonly onProgress: () => Promise<void>;
}

export async function send(upload: Upload): Promise<void> {
  await upload.onProgress();
  if (upload.spool.size <= partBytes) await sendWhole(upload);
  else await sendParts(upload);
}

async function sendWhole({ bucket, name, spool, notes }: Upload): Promise<void> {
  const body = await spool.read(0, spool.size);
  const put = (only: Record<string, string>) =>
    bucket.request({
      ...{ method: "PUT", name, body, expects: [412, 501] },
      headers: { "content-type": "application/octet-stream", ...notes, ...only },
    });
  let answer = await put(onlyNew);
  await answer.body?.cancel();
  // Some services can't do that condition.
  if (answer.status === 501) {
    answer = await put({});
    await answer.body?.cancel();
  }
  if (!answer.ok) await checkThere({ bucket, name, spool, notes });
}

/** Bytes at a place never change (Blobs-1), also when the answer to the request that stored them was lost. */
const onlyNew = { "if-none-match": "*" };

/** Whether what is there already are these bytes: an earlier request may have arrived although its answer did not. */
async function checkThere({ bucket, name, spool, notes }: Omit<Upload, "onProgress">): Promise<void> {
  const answer = await bucket.request({ method: "HEAD", name, expects: [404] });
  const isSame =
    answer.ok &&
    Number(answer.headers.get("content-length")) === spool.size &&
    answer.headers.get(digestNote) === notes[digestNote];
  if (isSame) return;
  throw new BoughError(
    "store_unavailable",
    "The object store has other bytes, or none, where these were to be stored.",
  );
}

export const digestNote = "x-amz-meta-sha256";

async function sendParts(upload: Upload): Promise<void> {
  const { bucket, name, notes } = upload;
  const headers = { "content-type": "application/octet-stream", ...notes };
  const begun = await bucket.text({ method: "POST", name, query: { uploads: "" }, headers });
  const uploadId = fieldOf(begun.text, "UploadId");
  if (!uploadId) throw new BoughError("store_unavailable", "The object store began no upload.");
  try {
    const tags = await sendEach(upload, uploadId);
    await complete(upload, uploadId, tags);
  } catch (error) {
    await abort(bucket, name, uploadId);
    throw error;
  }
}

/** Sends the parts, a few at a time; when one fails, no other begins, and all have ended when it rejects. */
async function sendEach({ bucket, name, spool, onProgress }: Upload, uploadId: string): Promise<string[]> {
  const size = Math.max(partBytes, Math.ceil(spool.size / mostParts));
  const count = Math.ceil(spool.size / size);
  const tags: string[] = [];
  let next = 0;
  let hasFailed = false;
  const work = async () => {
    while (next < count && !hasFailed) {
      const i = next++;
      try {
        tags[i] = await sendPart(i);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  const sendPart = async (i: number): Promise<string> => {
    const body = await spool.read(i * size, Math.min(spool.size, (i + 1) * size));
    const query = { partNumber: String(i + 1), uploadId };
    const answer = await bucket.request({ method: "PUT", name, query, body });
    await answer.body?.cancel();
    const tag = answer.headers.get("etag");
    if (!tag) throw new BoughError("store_unavailable", "The object store gave a part no ETag.");
    await onProgress();
    return tag;
  };
  const ends = await Promise.allSettled(Array.from({ length: Math.min(atOnce, count) }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return tags;
}

async function complete(upload: Upload, uploadId: string, tags: readonly string[]): Promise<void> {
  const { bucket, name } = upload;
  const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(tag)}</ETag></Part>`);
  const body = `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`;
  const request: BucketRequest = { method: "POST", name, query: { uploadId }, body, expects: [404] };
  for (let tries = 1; tries <= mostCompletions; tries++) {
    const { answer, text } = await bucket.text(request);
    // The service may answer 200 and say only then, in the body, that it failed.
    if (answer.ok && !text.includes("<Error>")) return;
    if (!answer.ok) break;
  }
  // If the upload is not there any more, an earlier request has completed it.
  await checkThere(upload);
}

/** Ends an upload in parts and frees what was sent. What fails here is found by removeParts(), or by a rule of the bucket. */
async function abort(bucket: Bucket, name: string, uploadId: string): Promise<void> {
  try {
    const answer = await bucket.request({ method: "DELETE", name, query: { uploadId }, expects: [404, 405] });
    await answer.body?.cancel();
  } catch {
    // See above.
  }
}

/** Ends uploads in parts that a process left behind when it died. */
export async function removeParts(bucket: Bucket, name: string): Promise<void> {
  const request: BucketRequest = { method: "GET", query: { uploads: "", prefix: name }, expects: [403, 404, 405, 501] };
  const { answer, text } = await bucket.text(request);
  // Services that can't list them have rules that end them.
  if (!answer.ok) return;
  for (const block of blocksOf(text, "Upload")) {
    const uploadId = fieldOf(block, "UploadId");
    if (fieldOf(block, "Key") === name && uploadId) await abort(bucket, name, uploadId);
  }
}
