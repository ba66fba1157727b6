// The page: bundled once, served from memory.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { rolldown } from "rolldown";

const here = (name) => new URL(name, import.meta.url);

async function bundle() {
  const input = here("app.jsx").pathname;
  const define = { "process.env.NODE_ENV": '"production"' };
  const bundled = await rolldown({ input, platform: "browser", transform: { define } });
  const { output } = await bundled.generate({ format: "esm", minify: true });
  await bundled.close();
  return output[0].code;
}

/** Serves the page on a port of this machine that is free. */
export async function servePage() {
  const files = {
    "/": ["text/html; charset=utf-8", await readFile(here("index.html"))],
    "/app.css": ["text/css; charset=utf-8", await readFile(here("app.css"))],
    "/app.js": ["text/javascript; charset=utf-8", await bundle()],
  };
  const http = createServer((request, response) => {
    const [type, body] = files[new URL(request.url, "http://page").pathname] ?? [];
    response.writeHead(body ? 200 : 404, { "content-type": type ?? "text/plain", "cache-control": "no-store" });
    response.end(body);
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${http.address().port}`, close: () => http.close() };
}
