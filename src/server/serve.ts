import { checkOptions, optionTable, text, whole } from "../base/options.ts";
import type { Server } from "./server.ts";
import type { ServeOptions, Serving } from "./serving.ts";

const serveTable = optionTable<ServeOptions>({ port: whole, host: text });

/**
 * Listens on Node, by default only on this machine. Several servers can share the listener if each has its own
 * prefix; the returned URLs are then those of the first.
 */
export async function serve(server: Server | readonly Server[], options: ServeOptions = {}): Promise<Serving> {
  checkOptions("The options of serve", options, serveTable);
  // Loaded on demand: a server that is used as a fetch handler does not need Node.
  const { listen } = await import("./node.ts");
  return listen(server, options);
}
