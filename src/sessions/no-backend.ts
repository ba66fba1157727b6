// In the place of the stores that are found by URL, where the platform is not Node (`imports` of package.json): a bundle for a
// worker or a browser holds none of them.

import { BoughError } from "../base/errors.ts";

function refuse(): never {
  throw new BoughError(
    "store_unsupported",
    'Stores can be named by directory or URL only on Node. Elsewhere, import a store (such as "bough/stores/memory") and pass the object.',
  );
}

export const fileStore = refuse;
export const sqliteStore = refuse;
export const postgresStore = refuse;
export const redisStore = refuse;
