// A way to a server on which things go wrong: connections are cut, answers come late, or never.

import { connect, createServer } from "node:net";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** In front of a port of this host; faults take a source of chance and hit the connections there are. */
export async function faultProxy(port) {
  const pairs = new Set();
  let open = Promise.resolve();
  const proxy = createServer((near) => {
    const pair = { near, far: connect(port, "127.0.0.1"), isDeaf: false };
    pairs.add(pair);
    for (const socket of [near, pair.far]) {
      socket.on("error", () => {});
      socket.on("close", () => end(pair));
    }
    near.on("data", (data) => void open.then(() => pair.far.write(data)));
    pair.far.on("data", (data) => void open.then(() => !pair.isDeaf && near.write(data)));
  });
  const end = (pair) => {
    pairs.delete(pair);
    pair.near.destroy();
    pair.far.destroy();
  };
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const some = (random) => [...pairs].filter(() => random.chance(0.5));
  return {
    port: proxy.address().port,
    /** Ends some of the connections. */
    async cut(random) {
      for (const pair of some(random)) end(pair);
    },
    /** What is asked on some of the connections is done there, and nobody here hears of it before they end. */
    async swallow(random) {
      const hit = some(random);
      for (const pair of hit) pair.isDeaf = true;
      await sleep(100);
      for (const pair of hit) end(pair);
    },
    /** Holds everything back for a while, in both directions. */
    async delay(random) {
      open = sleep(50 + random.int(400));
      await open;
    },
    async close() {
      for (const pair of pairs) end(pair);
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
