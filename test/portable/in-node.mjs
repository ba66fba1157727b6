// Serves the bundle beside it on plain Node's own listener: nothing is installed here, and `fetch` is all that it is asked for.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { Bough } from "./worker.mjs";

const bough = new Bough();
const listener = createServer(async (incoming, outgoing) => {
  const { method, url, headers } = incoming;
  const body = method === "GET" || method === "HEAD" ? undefined : Readable.toWeb(incoming);
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  const response = await bough.fetch(
    new Request(`http://${headers.host}${url}`, { method, headers, body, duplex: "half", signal: gone.signal }),
  );
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body)
    Readable.fromWeb(response.body)
      .on("error", () => {})
      .pipe(outgoing);
  else outgoing.end();
});
listener.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: listener.address().port })));
