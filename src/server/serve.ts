import type { Server } from "./server.ts";
import type { ServeOptions, Serving } from "./serving.ts";

/**
 * Listens on Node, by default only on this machine. Several servers can share the listener if each has its own
 * prefix; the returned URLs are then those of the first.
 */
export async function serve(server: Server | readonly Server[], options: ServeOptions = {}): Promise<Serving> {
  // Loaded on demand: a server that is used as a fetch handler does not need Node.
  const { listen } = await import("./node.ts");
  return listen(server, options);
}
