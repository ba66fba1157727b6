// The page: what a browser is shown at `/`. It is the same for everybody, so it is given without a credential and must
// hold no secret; what it shows of the server it asks for with the token in its own address, which no request carries.

import { createHash } from "node:crypto";

/** Answers for a page. Of what is in it, exactly its own scripts and styles may run, and they may ask this server only. */
export function pageResponder(html: string): () => Response {
  const policy = [
    "default-src 'none'",
    `script-src ${hashesOf(html, "script")}`,
    `style-src ${hashesOf(html, "style")}`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": policy };
  return () => new Response(html, { headers });
}

/** Whether a request is for the page of a server whose routes begin with this prefix. */
export function isForPage(request: Request, prefix: string): boolean {
  const { pathname } = new URL(request.url);
  return request.method === "GET" && (pathname === `${prefix}/` || pathname === prefix);
}

function hashesOf(html: string, element: "script" | "style"): string {
  const found = [...html.matchAll(new RegExp(`<${element}>([\\s\\S]*?)</${element}>`, "g"))];
  const hashes = found.map(([, text]) => `'sha256-${createHash("sha256").update(text!).digest("base64")}'`);
  return hashes.length > 0 ? hashes.join(" ") : "'none'";
}
