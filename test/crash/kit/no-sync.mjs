// Loaded into a writer (node --import) to show what the power campaign finds: a disk sync that does nothing and says it did.

import fs from "node:fs";

const nothing = (_handle, done) => setImmediate(done, null);
fs.fdatasync = nothing;
fs.fsync = nothing;
const folder = await fs.promises.open(".");
Object.getPrototypeOf(folder).sync = async () => {};
Object.getPrototypeOf(folder).datasync = async () => {};
await folder.close();
