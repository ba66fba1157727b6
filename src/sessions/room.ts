// Room: whether a conversation is small enough for another turn (ViewCache-5). What was compacted does not count, because a run need
// not hold it.

import { BoughError } from "../base/errors.ts";
import { jsonWeight } from "../base/json.ts";
import type { BranchRef } from "../log/index.ts";
import type { BranchView } from "../projection/index.ts";
import { visibleFrom } from "../projection/segment.ts";
import type { Context } from "./context.ts";

/** `limit_exceeded` when the conversation is too large. Undefined when there is nothing to wait for. */
export function needRoom(context: Context, ref: BranchRef): Promise<void> | undefined {
  const { views } = context;
  if (views.cache.largest === Number.POSITIVE_INFINITY) return undefined;
  const slot = views.slotOf(ref);
  return slot && !views.cache.isTooLarge(slot) ? undefined : findRoom(context, ref);
}

async function findRoom({ views, store }: Context, ref: BranchRef): Promise<void> {
  const { cache } = views;
  const cached = views.cachedToAppend(ref)?.view;
  // Loaded again, it holds only what a model sees.
  if (store.segments && cached?.skipped === 0 && visibleFrom(cached) > 0) views.forget(ref);
  const { view } = await views.loadForRun(ref);
  const slot = views.slotOf(ref);
  // A fork counts what it shares with its parent, of which it may show little.
  if (slot && cache.isTooLarge(slot) && weightOf(view) > cache.largest) throw tooLarge(ref, cache.largest);
}

function weightOf(view: BranchView): number {
  const visible = view.messages.slice(Math.max(0, visibleFrom(view) - view.skipped));
  return visible.reduce((sum, message) => sum + jsonWeight(message), 0);
}

function tooLarge({ sessionId, branchId }: BranchRef, limit: number): BoughError {
  const size = `${Math.floor(limit / 1024)} KiB`;
  const sentence = `The conversation on branch "${branchId}" is larger than ${size}. Compact it, fork an earlier message, or begin a new session.`;
  return new BoughError("limit_exceeded", sentence, { data: { sessionId, branchId, limit } });
}
