// Headers of assets: media types by file extension, and the content security policy.

import { base64 } from "../base/bytes.ts";
import { sha256 } from "../base/sha256.ts";

const textTypes: Readonly<Record<string, string>> = {
  html: "text/html",
  css: "text/css",
  js: "text/javascript",
  mjs: "text/javascript",
  json: "application/json",
  map: "application/json",
  webmanifest: "application/manifest+json",
  svg: "image/svg+xml",
  txt: "text/plain",
  md: "text/markdown",
  xml: "application/xml",
};

const binaryTypes: Readonly<Record<string, string>> = {
  avif: "image/avif",
  gif: "image/gif",
  ico: "image/x-icon",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  wav: "audio/wav",
  webm: "video/webm",
  otf: "font/otf",
  ttf: "font/ttf",
  woff: "font/woff",
  woff2: "font/woff2",
  pdf: "application/pdf",
  wasm: "application/wasm",
};

export function mediaTypeFor(name: string): string {
  const end = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  if (Object.hasOwn(textTypes, end)) return `${textTypes[end]}; charset=utf-8`;
  return Object.hasOwn(binaryTypes, end) ? binaryTypes[end]! : "application/octet-stream";
}

interface Sized {
  readonly bytes: Uint8Array;
  readonly type: string;
}

/** Pages may run only their own scripts and styles, and send requests only to this server. */
export function assetPolicy(assets: readonly Sized[]): string {
  const isPage = ({ type }: Sized) => type.startsWith("text/html");
  const decoder = new TextDecoder();
  const pages = assets.filter(isPage).map(({ bytes }) => decoder.decode(bytes));
  const isApp = assets.length > pages.length;
  const own = isApp ? ["'self'"] : [];
  return [
    "default-src 'none'",
    `script-src ${sources([...own, ...hashesOf(pages, "script")])}`,
    `style-src ${sources([...own, ...hashesOf(pages, "style")])}`,
    ...(isApp
      ? ["img-src 'self' blob: data:", "font-src 'self'", "media-src 'self' blob:", "manifest-src 'self'"]
      : []),
    ...(isApp ? ["worker-src 'self'"] : []),
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function sources(list: readonly string[]): string {
  return list.length > 0 ? [...new Set(list)].join(" ") : "'none'";
}

/** The text between the tags; empty for a script with `src`. */
function hashesOf(pages: readonly string[], element: "script" | "style"): string[] {
  const between = new RegExp(`<${element}(?:\\s[^>]*)?>([\\s\\S]*?)</${element}>`, "gi");
  const texts = pages.flatMap((page) => [...page.matchAll(between)].map(([, text]) => text!));
  return texts.filter((text) => text !== "").map((text) => `'sha256-${base64(sha256(text))}'`);
}
