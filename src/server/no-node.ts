// Replaces the listener on platforms other than Node (`imports` of package.json).

import { BoughError } from "../base/errors.ts";

export async function listen(): Promise<never> {
  throw new BoughError("invalid_argument", "serve needs Node. On other platforms, pass requests to server.fetch.");
}
