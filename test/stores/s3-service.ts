// A service that speaks as much of the S3 protocol as is used here, checks every signature, and does on demand what services do on
// bad days: answers 503 SlowDown, hangs up before or after it did what was asked, sends half a body, or nothing at all.

import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AwsV4Signer } from "aws4fetch";

/** What happens to a request: told before it is looked at. */
export type Fault = "slow-down" | "cut" | "cut-after" | "half-body" | "late-error" | "silent";
type Faults = (request: { method: string; query: URLSearchParams; name: string }) => Fault | undefined;

interface Stored {
  readonly bytes: Buffer;
  readonly notes: Record<string, string>;
}

export const keys = { accessKeyId: "oak", secretAccessKey: "leaf/leaf+leaf" };
export const region = "eu-central-1";

export class S3Service {
  readonly bucket = "trees";
  readonly objects = new Map<string, Stored>();
  readonly uploads = new Map<string, { name: string; notes: Record<string, string>; parts: Map<number, Buffer> }>();
  /** The requests that were taken, as `PUT name`. */
  readonly seen: string[] = [];
  readonly heads: Record<string, string>[] = [];
  faults: Faults = () => undefined;
  pageSize = 1000;
  hasConditions = true;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      void this.#take(request, response).catch(() => response.destroy());
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  reset(): void {
    this.objects.clear();
    this.uploads.clear();
    this.seen.length = 0;
    this.heads.length = 0;
    this.faults = () => undefined;
    this.pageSize = 1000;
    this.hasConditions = true;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const url = new URL(request.url!, `http://${request.headers.host}`);
    const method = request.method!;
    const name = decodeURIComponent(url.pathname.slice(this.bucket.length + 2));
    const query = url.searchParams;
    this.seen.push(`${method} ${name}${query.size > 0 ? `?${[...query.keys()].sort().join("&")}` : ""}`);
    this.heads.push(request.headers as Record<string, string>);
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    const fault = this.faults({ method, query, name });
    if (fault === "silent") return undefined;
    if (fault === "cut") return request.socket.destroy();
    if (fault === "slow-down") return refuse(response, 503, "SlowDown", "Please reduce your request rate.");
    const isSigned = await isSignedRight(request, url, body);
    if (isSigned !== true) return refuse(response, 403, isSigned, "Signature or bytes are not right.");
    if (!url.pathname.startsWith(`/${this.bucket}/`)) return refuse(response, 404, "NoSuchBucket", "No such bucket.");
    const isHalf = fault === "half-body";
    if (fault === "cut-after") response.end = () => response.destroy();
    if (fault === "late-error") {
      return response.writeHead(200).end(errorXml("InternalError", "We encountered an internal error."));
    }
    return this.#answer({ method, name, query, body, request, response, isHalf });
  }

  #answer(given: Given): unknown {
    const { method, query, name } = given;
    if (method === "GET" && name === "") return query.has("uploads") ? this.#listUploads(given) : this.#list(given);
    if (method === "GET" || method === "HEAD") return this.#get(given);
    if (method === "POST") return query.has("uploads") ? this.#begin(given) : this.#complete(given);
    if (method === "PUT") return query.has("partNumber") ? this.#part(given) : this.#put(given);
    const uploadId = query.get("uploadId");
    if (uploadId === null) this.objects.delete(name);
    else if (!this.uploads.delete(uploadId)) return refuse(given.response, 404, "NoSuchUpload", "No such upload.");
    return given.response.writeHead(204).end();
  }

  #get({ method, name, query, request, response, isHalf }: Given): unknown {
    const stored = this.objects.get(name);
    if (!stored) return refuse(response, 404, "NoSuchKey", "No such key.");
    const { bytes, notes } = stored;
    const asked = /^bytes=(\d+)-(\d*)$/.exec(String(request.headers.range ?? ""));
    const [from, to] = asked ? [Number(asked[1]), asked[2] ? Number(asked[2]) + 1 : bytes.length] : [0, bytes.length];
    if (asked && from >= bytes.length) return refuse(response, 416, "InvalidRange", "No such range.");
    const part = bytes.subarray(from, to);
    response.writeHead(asked ? 206 : 200, {
      ...notes,
      "content-length": part.length,
      ...(query.has("response-content-type") && { "content-type": query.get("response-content-type")! }),
    });
    if (method === "HEAD") return response.end();
    if (!isHalf) return response.end(part);
    return response.write(part.subarray(0, Math.ceil(part.length / 2)), () => request.socket.destroy());
  }

  #put({ name, body, request, response }: Given): unknown {
    if (request.headers["if-none-match"] !== undefined) {
      if (!this.hasConditions) return refuse(response, 501, "NotImplemented", "A header is not implemented.");
      if (this.objects.has(name)) return refuse(response, 412, "PreconditionFailed", "It is there already.");
    }
    this.objects.set(name, { bytes: body, notes: notesOf(request) });
    return response.writeHead(200, { etag: tagOf(body) }).end();
  }

  #begin({ name, request, response }: Given): unknown {
    const uploadId = randomUUID();
    this.uploads.set(uploadId, { name, notes: notesOf(request), parts: new Map() });
    return response.end(
      `<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`,
    );
  }

  #part({ query, body, response }: Given): unknown {
    const upload = this.uploads.get(query.get("uploadId")!);
    if (!upload) return refuse(response, 404, "NoSuchUpload", "No such upload.");
    upload.parts.set(Number(query.get("partNumber")), body);
    return response.writeHead(200, { etag: tagOf(body) }).end();
  }

  #complete({ name, query, body, response }: Given): unknown {
    const upload = this.uploads.get(query.get("uploadId")!);
    if (!upload) return refuse(response, 404, "NoSuchUpload", "No such upload.");
    const listed = [...String(body).matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>([^<]*)<\/ETag>/g)];
    const parts = listed.map(([, number, tag]) => {
      const part = upload.parts.get(Number(number));
      return part && tagOf(part) === tag ? part : undefined;
    });
    const isTooSmall = parts.slice(0, -1).some((part) => part && part.length < 5 * 1024 * 1024);
    if (parts.includes(undefined) || isTooSmall) return refuse(response, 400, "InvalidPart", "A part is not right.");
    this.objects.set(name, { bytes: Buffer.concat(parts as Buffer[]), notes: upload.notes });
    this.uploads.delete(query.get("uploadId")!);
    return response.end("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
  }

  #list({ query, response }: Given): unknown {
    const names = [...this.objects.keys()].filter((name) => name.startsWith(query.get("prefix") ?? "")).sort();
    const from = Number(query.get("continuation-token") ?? 0);
    const page = names.slice(from, from + this.pageSize);
    const rows = page.map(
      (name) => `<Contents><Key>${name}</Key><Size>${this.objects.get(name)!.bytes.length}</Size></Contents>`,
    );
    const isMore = from + page.length < names.length;
    const next = isMore ? `<NextContinuationToken>${from + page.length}</NextContinuationToken>` : "";
    return response.end(
      `<ListBucketResult><IsTruncated>${isMore}</IsTruncated>${next}${rows.join("")}</ListBucketResult>`,
    );
  }

  #listUploads({ query, response }: Given): unknown {
    const rows = [...this.uploads]
      .filter(([, { name }]) => name.startsWith(query.get("prefix") ?? ""))
      .map(([id, { name }]) => `<Upload><Key>${name}</Key><UploadId>${id}</UploadId></Upload>`);
    return response.end(`<ListMultipartUploadsResult>${rows.join("")}</ListMultipartUploadsResult>`);
  }
}

interface Given {
  readonly method: string;
  readonly name: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly isHalf: boolean;
}

/** Whether the request was signed with the keys, and the bytes are those that were signed; else the service's code. */
async function isSignedRight(request: IncomingMessage, url: URL, body: Buffer): Promise<true | string> {
  const sign = (more: object) =>
    new AwsV4Signer({ ...keys, region, service: "s3", method: request.method!, ...more } as never).sign();
  const given = url.searchParams.get("X-Amz-Signature");
  if (given !== null) {
    const plain = new URL(url);
    for (const name of ["Signature", "Algorithm", "Credential", "SignedHeaders", "Date"])
      plain.searchParams.delete(`X-Amz-${name}`);
    const again = await sign({ url: plain.href, datetime: url.searchParams.get("X-Amz-Date"), signQuery: true });
    return again.url.searchParams.get("X-Amz-Signature") === given || "SignatureDoesNotMatch";
  }
  const signed = /SignedHeaders=([^,]*)/.exec(request.headers.authorization ?? "")?.[1];
  if (signed === undefined) return "AccessDenied";
  const headers = Object.fromEntries(
    signed.split(";").flatMap((name) => (name === "host" ? [] : [[name, String(request.headers[name])]])),
  );
  const again = await sign({ url: url.href, headers, datetime: request.headers["x-amz-date"] });
  if (again.headers.get("authorization") !== request.headers.authorization) return "SignatureDoesNotMatch";
  const digest = createHash("sha256").update(body).digest("hex");
  return request.headers["x-amz-content-sha256"] === digest || "XAmzContentSHA256Mismatch";
}

function notesOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-amz-meta-"))) as Record<
    string,
    string
  >;
}

function tagOf(bytes: Buffer): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

function errorXml(code: string, message: string): string {
  return `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
}

function refuse(response: ServerResponse, status: number, code: string, message: string): unknown {
  return response.writeHead(status, { "content-type": "application/xml" }).end(errorXml(code, message));
}
