// A page made of one module, served where a browser finds it.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { onTestFinished } from "vitest";

/** The origin of a page that runs the module beside this file. */
export async function servePage(module: string): Promise<string> {
  const input = fileURLToPath(new URL(module, import.meta.url));
  const transform = { define: { "process.env.NODE_ENV": '"development"' } };
  const bundled = await rolldown({ input, platform: "browser", transform });
  const { output } = await bundled.generate({ format: "esm" });
  await bundled.close();
  const http = createServer((request, response) => {
    const isCode = request.url === "/page.js";
    response.writeHead(200, { "content-type": isCode ? "text/javascript" : "text/html" });
    response.end(isCode ? output[0].code : '<body><script type="module" src="/page.js"></script></body>');
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void http.close());
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}
