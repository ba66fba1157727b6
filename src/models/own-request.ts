import { copyPlain } from "../base/json.ts";
import type { ModelRequest } from "./port.ts";

/**
 * The request as a copy that whoever gets it may change, for this call only: its messages, tools and settings are shared
 * with no other call. The model itself is not copied. What was known of the whole prompt (specification.ts) is not known of
 * the copy.
 */
export function ownRequest({ model, ...request }: ModelRequest): ModelRequest {
  return { model, ...copyPlain(request) };
}
