// A request that a hook may change in place, for one call only: its messages, tools and settings are shared with no other
// call. What grows with the conversation is copied when it is first looked at, so that a hook that does not care about the
// prompt costs the same however long that is.

import { copyPlain } from "../base/json.ts";
import type { ModelRequest } from "./port.ts";

const copiedWhenRead = ["prompt", "tools"] as const;

/** What each own request was made of. */
const sources = new WeakMap<ModelRequest, ModelRequest>();

/** The model itself is not copied. What was known of a whole prompt (specification.ts) is not known of its copy. */
export function ownRequest(source: ModelRequest): ModelRequest {
  const { model, prompt: _prompt, tools: _tools, ...rest } = source;
  const own = { model, ...copyPlain(rest) } as ModelRequest;
  for (const key of copiedWhenRead) {
    const settle = (value: unknown) => {
      Object.defineProperty(own, key, { value, writable: true, enumerable: true, configurable: true });
      return value;
    };
    const get = () => settle(copyPlain(source[key]));
    Object.defineProperty(own, key, { get, set: settle, enumerable: true, configurable: true });
  }
  sources.set(own, source);
  return own;
}

/** The request as it is sent: parts that no hook read are the source's own and are not copied. */
export function requestToSend(request: ModelRequest): ModelRequest {
  const source = sources.get(request);
  if (!source) return request;
  const sent: Record<string, unknown> = {};
  for (const key of Object.keys(request) as (keyof ModelRequest)[]) {
    sent[key] = Object.getOwnPropertyDescriptor(request, key)?.get ? source[key] : request[key];
  }
  return sent as unknown as ModelRequest;
}

/**
 * The request with one more reminder. A request that hooks may change gets it in place, so that its prompt is not copied for
 * it; a shared one stays as it is.
 */
export function addReminder(request: ModelRequest, text: string): ModelRequest {
  const reminders = [...(request.reminders ?? []), text];
  return sources.has(request) ? Object.assign(request, { reminders }) : { ...request, reminders };
}
