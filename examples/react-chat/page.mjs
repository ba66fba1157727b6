// The page: bundled once, served from memory.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { rolldown } from "rolldown";

const here = (name) => new URL(name, import.meta.url);

async function bundle(mode) {
  const input = here("app.jsx").pathname;
  const define = { "process.env.NODE_ENV": JSON.stringify(mode) };
  const bundled = await rolldown({ input, platform: "browser", transform: { define } });
  const { output } = await bundled.generate({ format: "esm", minify: mode === "production" });
  await bundled.close();
  return output[0].code;
}

/** Serves the page on a free local port. In development mode React adds checks and warnings. */
export async function servePage(mode = "production") {
  const files = {
    "/": ["text/html; charset=utf-8", await readFile(here("index.html"))],
    "/app.css": ["text/css; charset=utf-8", await readFile(here("app.css"))],
    "/app.js": ["text/javascript; charset=utf-8", await bundle(mode)],
  };
  const http = createServer((request, response) => {
    const [type, body] = files[new URL(request.url, "http://page").pathname] ?? [];
    response.writeHead(body ? 200 : 404, { "content-type": type ?? "text/plain", "cache-control": "no-store" });
    response.end(body);
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${http.address().port}`, close: () => http.close() };
}
