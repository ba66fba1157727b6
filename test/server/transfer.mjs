// Uploads a file over loopback to a server in this process, downloads it again, and prints by how much the resident memory grew.
//   node test/server/transfer.mjs '{"megabytes":1024,"store":"sqlite","folder":"/tmp/x"}'

import { createHash } from "node:crypto";
import { request as send } from "node:http";
import { join } from "node:path";
import { createServer, serve } from "../../dist/server/index.js";
import { fileStore } from "../../dist/stores/file/index.js";
import { sqliteStore } from "../../dist/stores/sqlite/index.js";

const { megabytes, store: kind, folder } = JSON.parse(process.argv[2]);
const bytes = megabytes * 1024 * 1024;
const token = "0123456789abcdef";
const store = kind === "file" ? await fileStore(join(folder, "files")) : await sqliteStore(join(folder, "bough.db"));
const server = createServer({ store, token, limits: { uploadBytes: bytes } });
const serving = await serve(server, { port: 0, host: "127.0.0.1" });
const base = { host: "127.0.0.1", port: serving.port, headers: { authorization: `Bearer ${token}` } };
const content = "/sessions/s/branches/main/content";
await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });

/** A megabyte that is like no other. */
function* pieces(hash) {
  for (let i = 0; i < megabytes; i++) {
    const piece = Buffer.alloc(1024 * 1024, i % 251);
    piece.writeUInt32BE(i);
    hash.update(piece);
    yield piece;
  }
}

function exchange(method, path, headers, body) {
  return new Promise((resolve, reject) => {
    const request = send({ ...base, method, path, headers: { ...base.headers, ...headers } }, resolve);
    request.on("error", reject);
    (async () => {
      for (const piece of body ?? []) {
        if (!request.write(piece)) await new Promise((ready) => request.once("drain", ready));
      }
      request.end();
    })().catch(reject);
  });
}

let largest = 0;
const look = setInterval(() => {
  largest = Math.max(largest, process.memoryUsage().rss);
}, 20);
globalThis.gc?.();
const before = process.memoryUsage().rss;
const sent = createHash("sha256");
const uploaded = await exchange("POST", content, { "content-length": bytes }, pieces(sent));
let answer = "";
for await (const text of uploaded) answer += text;
if (uploaded.statusCode !== 201) throw new Error(answer);
const { id, size } = JSON.parse(answer);
const received = createHash("sha256");
const downloaded = await exchange("GET", `${content}/${id}`, {});
for await (const piece of downloaded) received.update(piece);
clearInterval(look);
await serving.close();
await store.close().catch(() => {});
const isSame = size === bytes && id === sent.digest("hex") && id === received.digest("hex");
console.log(JSON.stringify({ isSame, grownMegabytes: Math.round((largest - before) / 1024 / 1024) }));
