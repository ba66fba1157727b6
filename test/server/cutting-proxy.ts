// A way to a server on which every connection is cut, after so many bytes of what the server says.

import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface CuttingProxy {
  readonly port: number;
  /** How many connections were cut. */
  readonly cuts: number;
  /** Where the server is from now on. */
  point(port: number): void;
  /** From now on, connections last. */
  heal(): void;
}

/** `budget` says after how many bytes the next connection is cut. */
export async function cuttingProxy(budget: () => number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let target = 0;
  let cuts = 0;
  let isHealed = false;
  const proxy = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    let left = isHealed ? Number.POSITIVE_INFINITY : budget();
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.on("data", (chunk) => {
      const piece = chunk.subarray(0, left);
      left -= piece.length;
      if (left > 0) return void near.write(piece);
      cuts++;
      // What came before the cut arrives.
      near.end(piece, () => near.destroy());
      far.destroy();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return {
    port: (proxy.address() as { port: number }).port,
    get cuts() {
      return cuts;
    },
    point(port) {
      target = port;
    },
    heal() {
      isHealed = true;
    },
  };
}
