// The house: which rooms there are, how high each stands, and what is special about some. The doors check, the purity
// lint and the package shape all read this table, so a room is introduced here and nowhere else.

/** Rooms by level, highest first. `x/*` means that every folder in x/ is a room of its own. */
const levels = {
  11: ["cli", "tui", "bots"],
  10: ["chat", "interop", "react", "mcp", "testing"],
  9: ["server", "client"],
  8: ["workflows"],
  7: ["agent"],
  6: ["runs"],
  5: ["sessions", "middleware", "scripted"],
  4: ["models", "tools", "live", "content", "stores/*", "blobs/*"],
  3: ["log", "projection", "wire"],
  2: ["events"],
  1: ["base"],
};

/** Lower rooms that stay shut all the same. A store keeps opaque payloads, so it can't be allowed to know the events. */
const shut = { "stores/*": ["events"], "blobs/*": ["events"] };

/** What runs in a browser, with everything it reaches. */
const browserRooms = ["events", "projection", "wire", "client", "react"];

/** From this level up, code may take time, chance and files from the platform; below, they come in through ports. */
const impureFrom = 7;

/** Files below that level which are the implementation of a port. */
const portFiles = ["src/base/clock.ts", "src/base/ids.ts"];
const portRooms = ["stores/*", "blobs/*"];

/** Rooms that are no subpath of the package: what users need of them is exported by the root. */
const privateRooms = [
  "base",
  "log",
  "wire",
  "models",
  "tools",
  "middleware",
  "live",
  "content",
  "sessions",
  "runs",
  "agent",
  "chat",
  "stores/namespaced",
  "cli",
  "tui",
];

const rooms = Object.entries(levels)
  .flatMap(([level, names]) => names.map((name) => ({ name, level: Number(level) })))
  .sort((a, b) => b.level - a.level);

module.exports = { rooms, shut, browserRooms, impureFrom, portFiles, portRooms, privateRooms };
