// A way to the server that loses an answer: what was asked is done there, and nobody here hears of it.

import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { server } from "./kit.ts";

export interface LossyProxy {
  readonly url: string;
  /** How many answers were lost. */
  readonly lost: number;
  /**
   * Loses the answer to the next message that holds this text, then ends that connection, or leaves it open and silent.
   */
  loseAnswerTo(text: string, how?: "cut" | "silent"): void;
}

export async function lossyProxy(): Promise<LossyProxy> {
  const sockets = new Set<Socket>();
  let armed: { text: string; how: "cut" | "silent" } | undefined;
  let lost = 0;
  const proxy = createServer((near) => {
    const far = connect(server().port, "127.0.0.1");
    let losing: "cut" | "silent" | undefined;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on("data", (chunk) => {
      if (armed && chunk.includes(armed.text)) {
        losing = armed.how;
        armed = undefined;
      }
      far.write(chunk);
    });
    far.on("data", (chunk) => {
      if (!losing) return near.write(chunk);
      lost += 1;
      if (losing === "cut") near.destroy();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const { port } = proxy.address() as { port: number };
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    get lost() {
      return lost;
    },
    loseAnswerTo(text, how = "cut") {
      armed = { text, how };
    },
  };
}
