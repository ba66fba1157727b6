// Assets: the files of a web app, or a server's single page. They are served without a credential, so they must hold no
// secret; the app sends its requests with the token behind the `#` of its address, which no request carries.
//   Assets-1. Only files that existed when the server was created are served, from memory: no request reaches a file system.
//   Assets-2. A request is answered here only if it is a GET or HEAD, and not for a built-in route or a mount.

import { base64 } from "../base/bytes.ts";
import { BoughError } from "../base/errors.ts";
import { sha256 } from "../base/sha256.ts";
import { readAssetDirectory } from "./asset-directory.ts";
import { assetPolicy, mediaTypeFor } from "./asset-types.ts";
import { isBelow, isPlainPath } from "./prefix.ts";

/** The files of a web app, and where a server serves them. */
export interface AssetsOptions {
  /**
   * A file with ".br" or ".gz" added to another's name is that file compressed, and sent to browsers that accept it. A directory
   * (on Node), or the files' contents by path, such as "index.html" and "assets/app-3fA9x2.js". Read once, when the server is
   * created. Names that begin with a dot are left out, and links out of the directory are refused.
   */
  readonly files: string | Readonly<Record<string, string | Uint8Array>>;
  /** The path of the app, below the server's prefix (default "": the app is at `/`). */
  readonly path?: string;
  /** The file for a browser that opens a path without a file, so that the app can route it (default "index.html"); false for none. */
  readonly fallback?: string | false;
  /** Which files never change and are cached for a year (default: names with a hash of eight characters or more). */
  readonly immutable?: RegExp;
  /**
   * The `content-security-policy` (default: the app's own scripts, styles, fonts and images, inline scripts and styles of its pages,
   * requests to this server, and nothing else).
   */
  readonly policy?: string;
}

interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
  readonly cacheControl: string;
  /** The same file compressed, best first. */
  readonly compressed: { readonly encoding: string; readonly bytes: Uint8Array<ArrayBuffer> }[];
  readonly etags: Map<string, string>;
}

const encodings = { br: "br", gz: "gzip" } as const;

/** `app-3fA9x2kd.js`, `app.3fa9c2d1.js`: letters and digits mixed, so that a word or a date is not mistaken for a hash. */
const hashed = /[.-](?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{8,}\.\w+$/;
const encoder = new TextEncoder();

export class Assets {
  /** The path of the app, with the server's prefix. */
  readonly #root: string;
  readonly #files = new Map<string, Asset>();
  readonly #fallback: Asset | undefined;
  readonly #policy: string;

  constructor(
    { files, path = "", fallback = "index.html", immutable = hashed, policy }: AssetsOptions,
    prefix: string,
  ) {
    if (!isPlainPath(path)) throw invalid(`assets.path must be a path such as "/app", not "${path}".`);
    this.#root = prefix + path;
    const given = typeof files === "string" ? readAssetDirectory(files) : Object.entries(files);
    const names = new Set(given.map(([name]) => name));
    for (const [name, content] of given) {
      if (compressionOf(name, names)) continue;
      const isStable = isImmutable(immutable, name);
      this.#files.set(checkName(name), {
        bytes: bytesOf(content),
        type: mediaTypeFor(name),
        cacheControl: isStable ? "public, max-age=31536000, immutable" : "no-cache",
        compressed: [],
        etags: new Map(),
      });
    }
    // In the order of preference.
    for (const end of ["br", "gz"] as const) {
      for (const [name, content] of given) {
        const of = compressionOf(name, names);
        if (of?.end === end)
          this.#files.get(of.name)!.compressed.push({ encoding: encodings[end], bytes: bytesOf(content) });
      }
    }
    if (this.#files.size === 0) throw invalid("assets.files must have at least one file.");
    if (fallback !== false) this.#fallback = this.#files.get(fallback);
    if (fallback !== false && fallback !== "index.html" && !this.#fallback) {
      throw invalid(`assets.fallback names "${fallback}", which is not one of the files.`);
    }
    this.#policy = policy ?? assetPolicy([...this.#files.values()]);
  }

  /** The response to a request for one of the files; undefined for any other. */
  find(request: Request): Response | undefined {
    const { method } = request;
    const { pathname, search } = new URL(request.url);
    if ((method !== "GET" && method !== "HEAD") || !isBelow(pathname, this.#root)) return undefined;
    // Relative URLs in a page need the slash.
    if (pathname === this.#root && this.#files.size > 1) {
      return new Response(null, { status: 308, headers: { location: `${pathname}/${search}` } });
    }
    const name = decoded(pathname.slice(this.#root.length + 1));
    if (name === undefined) return undefined;
    const asset = this.#files.get(name === "" ? "index.html" : name) ?? this.#forNavigation(request, name);
    return asset && this.#answer(request, asset);
  }

  #forNavigation({ headers }: Request, name: string): Asset | undefined {
    const mode = headers.get("sec-fetch-mode");
    const isNavigation = mode === null ? /\btext\/html\b/.test(headers.get("accept") ?? "") : mode === "navigate";
    // A missing path with a file extension is a missing file, not a route of the app.
    return isNavigation && !/\.\w+$/.test(name) ? this.#fallback : undefined;
  }

  #answer({ method, headers: asked }: Request, asset: Asset): Response {
    const accepted = acceptedEncodings(asked.get("accept-encoding"));
    const packed = asset.compressed.find(({ encoding }) => accepted.has(encoding));
    const bytes = packed?.bytes ?? asset.bytes;
    const key = packed?.encoding ?? "";
    const etag = asset.etags.get(key) ?? `"${base64(sha256(bytes)).slice(0, 27)}"`;
    asset.etags.set(key, etag);
    const headers: Record<string, string> = {
      etag,
      ...(asset.compressed.length > 0 && { vary: "accept-encoding" }),
      "cache-control": asset.cacheControl,
      "content-security-policy": this.#policy,
    };
    if (isKnown(asked.get("if-none-match"), etag)) return new Response(null, { status: 304, headers });
    headers["content-type"] = asset.type;
    headers["content-length"] = String(bytes.length);
    if (packed) headers["content-encoding"] = packed.encoding;
    return new Response(method === "HEAD" ? null : bytes, { headers });
  }
}

/** Whether a client has it already (RFC 9110, 13.1.2: compared weakly). */
function isKnown(given: string | null, etag: string): boolean {
  if (given === null) return false;
  const tags = given.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

function bytesOf(content: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof content === "string" ? encoder.encode(content) : new Uint8Array(content);
}

/** Which file the name is a compressed copy of. */
function compressionOf(name: string, names: ReadonlySet<string>): { name: string; end: "br" | "gz" } | undefined {
  const [, base, end] = /^(.+)\.(br|gz)$/.exec(name) ?? [];
  return base !== undefined && names.has(base) ? { name: base, end: end as "br" | "gz" } : undefined;
}

/** The encodings that a request names and does not rule out. */
function acceptedEncodings(header: string | null): ReadonlySet<string> {
  const accepted = (header ?? "").split(",").flatMap((each) => {
    const [encoding = "", ...params] = each.split(";").map((part) => part.trim().toLowerCase());
    return params.some((param) => /^q=0(\.0*)?$/.test(param)) ? [] : [encoding];
  });
  return new Set(accepted);
}

function isImmutable(pattern: RegExp, name: string): boolean {
  return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, "")).test(name);
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
const notInPaths = /[\\\u0000-\u001f\u007f]/;

/** Accepts only names that every platform reads the same way. */
function checkName(name: string): string {
  const isPlain = !notInPaths.test(name) && name.split("/").every((part) => part !== "" && !part.startsWith("."));
  if (isPlain) return name;
  throw invalid(`An asset's path must be like "assets/app.js", not "${name}".`);
}

function invalid(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
