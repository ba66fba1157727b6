// How many appends a second: node test/redis/speed.mjs [seconds]   (on the built package; a server of its own for each row)
// Each branch has one append of two facts under way at a time, as a run has.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { redisStore } from "../../dist/stores/redis/index.js";

const seconds = Number(process.argv[2] ?? 3);
const port = 16_000 + (process.pid % 10_000);
const durabilities = {
  "no disk": ["--save", "", "--appendonly", "no"],
  "appendfsync everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
  "appendfsync always": ["--appendonly", "yes", "--appendfsync", "always"],
};

for (const [name, settings] of Object.entries(durabilities)) {
  for (const branches of [1, 16, 64]) {
    const rate = await withServer(settings, (url) => measure(url, branches));
    console.log(
      `${name.padEnd(22)} ${String(branches).padStart(3)} branches  ${rate.toFixed(0).padStart(7)} appends/s`,
    );
  }
}

async function withServer(settings, work) {
  const directory = mkdtempSync(join(tmpdir(), "bough-redis-speed-"));
  const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory];
  const server = spawn("redis-server", [...place, ...settings], { stdio: "ignore" });
  await new Promise((resolve) => setTimeout(resolve, 500));
  try {
    return await work(`redis://127.0.0.1:${port}`);
  } finally {
    const end = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await end;
    rmSync(directory, { recursive: true });
  }
}

async function measure(url, branches) {
  const store = await redisStore(url, { onWarning: () => {} });
  const data = JSON.stringify({ type: "message.added", text: "x".repeat(180) });
  const until = performance.now() + seconds * 1000;
  let appends = 0;
  await Promise.all(
    Array.from({ length: branches }, async (_, b) => {
      const ref = { sessionId: `s${b}`, branchId: "main" };
      const branch = { id: "main", header: {}, events: [] };
      await store.createSession({ id: ref.sessionId, metadata: {}, state: {}, branch });
      const { epoch } = (
        await store.append(ref, [{ id: "claim", data: "{}" }], { claim: { runId: "r", owner: "o", leaseMs: 60_000 } })
      ).claim;
      for (let i = 0; performance.now() < until; i++) {
        const events = [1, 2].map((n) => ({ id: `${i}-${n}`, data }));
        await store.append(ref, events, { epoch, expectedSeq: 2 * i + 1, header: { n: i } });
        appends += 1;
      }
    }),
  );
  await store.close();
  return appends / seconds;
}
