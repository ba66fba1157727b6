// Holds the doors between the rooms (npm run doors). The table is scripts/rooms.cjs; every rule here is made from it:
// a file imports its own room and lower ones, type imports included, and nothing imports in a circle.

const { builtinModules } = require("node:module");
const { rooms, shut, browserRooms } = require("./scripts/rooms.cjs");

const tests = "\\.test\\.ts$";
const root = "^src/index\\.ts$";
const testKit = "^src/testing/";

/** The files of a room. A family (`stores/*`) matches all its members. */
const filesOf = (name) => `^src/${name.replace("*", "[^/]+")}/`;
/** The files of a family, its member captured, so that the other side of a rule can say `$1`: the same member. */
const filesOfOne = (name) => `^src/${name.replace("*", "([^/]+)")}/`;
const sameRoom = (name) => `^src/${name.replace("*", "$1")}/`;

function doorsOf({ name, level }) {
  const closed = shut[name] ?? [];
  const lower = rooms.filter((room) => room.level < level && !closed.includes(room.name));
  const open = [sameRoom(name), ...lower.map((room) => filesOf(room.name))];
  const except = closed.map((room) => `, except ${room}/`).join("");
  const comment = `${name} stands on level ${level}: it imports itself and lower levels${except}.`;
  const id = name.replace("/*", "");
  return [
    {
      name: `doors-of-${id}`,
      comment,
      severity: "error",
      from: { path: filesOfOne(name), pathNot: tests },
      to: { path: "^src/", pathNot: open },
    },
    {
      name: `doors-of-${id}-tests`,
      comment: `${comment} Its tests may also import the test kit.`,
      severity: "error",
      from: { path: `${filesOfOne(name)}.*${tests}` },
      to: { path: "^src/", pathNot: [...open, testKit] },
    },
  ];
}

// A file is seen as an importer, as something imported, or, with neither, as an orphan: three rules leave no gap.
function unknownRooms() {
  const known = [root, ...rooms.map((room) => filesOf(room.name))];
  const comment = "Every file in src/ lives in a room of scripts/rooms.cjs; add the room there first.";
  const unknown = { path: "^src/", pathNot: known };
  return [
    { name: "unknown-room", comment, severity: "error", from: unknown, to: {} },
    { name: "unknown-room-imported", comment, severity: "error", from: {}, to: unknown },
    { name: "unknown-room-orphan", comment, severity: "error", from: { ...unknown, orphan: true }, to: {} },
  ];
}

// Matched by name, because a builtin newer than this Node (node:sqlite) does not count as a core module to the cruiser.
const builtins = ["^node:", `^(${builtinModules.join("|")})$`];

const browserSafe = {
  name: "browser-safe",
  comment: `${browserRooms.join(", ")} run in browsers: nothing they reach may import a Node builtin.`,
  severity: "error",
  from: { path: browserRooms.map(filesOf), pathNot: tests },
  to: { path: builtins, reachable: true },
};

const studio = {
  name: "doors-of-studio",
  comment:
    "Studio is a client like any other: it imports the client, the hook, the projection and the events, at their doors.",
  severity: "error",
  from: { path: "^studio/" },
  to: { path: "^src/", pathNot: ["^src/(client|react|projection|events)/index\\.ts$", "^src/events/parts\\.ts$"] },
};

const manners = [
  {
    name: "no-cycles",
    comment: "Files that import each other in a circle can't be read, tested or moved alone.",
    severity: "error",
    from: {},
    to: { circular: true },
  },
  {
    name: "no-tests-imported",
    comment: "A test is nobody's dependency; what two tests share goes into a file of its own.",
    severity: "error",
    from: {},
    to: { path: `^src/.*${tests}` },
  },
  {
    name: "no-way-round",
    comment: "Inside src/ the package is imported by relative path: its own name would go round the doors.",
    severity: "error",
    from: { path: "^src/" },
    to: { path: "^(bough(/|$)|dist/|(\\.\\./)*node_modules/bough/)" },
  },
  {
    name: "no-lost-imports",
    comment: "An import that leads nowhere can't be checked.",
    severity: "error",
    from: {},
    to: { couldNotResolve: true, pathNot: "^(node:|bough(/|$))" },
  },
];

module.exports = {
  forbidden: [...rooms.flatMap(doorsOf), ...unknownRooms(), browserSafe, studio, ...manners],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    // Packages that have only subpath exports would not be found otherwise.
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "default"] },
  },
};
