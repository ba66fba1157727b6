// Keys of a branch. The message that keys act on is the marked one, else the last.

import { go, linkTo, type Pane, type Place } from "../place.ts";
import { useKeys } from "../ui/keys.ts";
import type { BranchActions } from "./branch-actions.ts";
import type { MessageRow, Row } from "./rows.ts";

const panes: readonly Pane[] = ["branches", "log", "model", "files", "info"];

export function useBranchKeys(
  rows: readonly Row[],
  place: Place,
  marked: string | undefined,
  actions: BranchActions,
): void {
  const messages = rows.filter((row): row is MessageRow => row.kind === "message");
  const at = messages.findIndex(({ key }) => key === marked);
  const here = messages[at < 0 ? messages.length - 1 : at];
  const mark = (row: MessageRow | undefined) => row && go({ ...place, message: row.key }, { replace: true });
  const version = (by: number) => {
    const versions = versionsNear(messages, at, actions);
    if (versions) actions.showVersion(versions, by);
  };
  const forkPoint = (by: number) => {
    const from = at < 0 ? messages.length : at;
    const points = by < 0 ? messages.slice(0, from).reverse() : messages.slice(from + 1);
    mark(points.find(({ key }) => actions.versionsAt(key)));
  };
  const lastUser = () => messages.findLast(({ message }) => message.role === "user");
  useKeys({
    j: () => mark(at < 0 ? messages[0] : messages[at + 1]),
    k: () => mark(at < 0 ? messages.at(-1) : messages[at - 1]),
    h: () => version(-1),
    l: () => version(1),
    "[": () => forkPoint(-1),
    "]": () => forkPoint(1),
    e: () => actions.startEdit((here?.message.role === "user" ? here : lastUser())?.key),
    r: () => here && !actions.isPast && void actions.again(here.key),
    f: () => here && !actions.isPast && void actions.fork(here.key),
    m: () => {
      const reply =
        here?.message.role === "assistant" ? here : messages.findLast(({ message }) => message.role === "assistant");
      if (reply) actions.showPrompt(reply.key);
    },
    u: () => !actions.isPast && void actions.undo(),
    t: () => document.getElementById("time")?.focus(),
    i: () => document.querySelector<HTMLTextAreaElement>(".composer textarea")?.focus(),
    Escape: () => {
      const { at: _at, with: _with, message: _message, ...now } = place;
      if (linkTo(now) === linkTo(place)) void actions.stop();
      else go(now);
    },
    c: () => actions.startCompare(true),
    ...Object.fromEntries(panes.map((pane, i) => [String(i + 1), () => go({ ...place, pane }, { replace: true })])),
  });
}

/** The versions of the marked message; else the nearest before it, for a branch is left where it was forked. */
function versionsNear(messages: readonly MessageRow[], at: number, { versionsAt }: BranchActions) {
  const atEnd = at < 0 ? versionsAt(undefined) : undefined;
  if (atEnd) return atEnd;
  for (let i = at < 0 ? messages.length - 1 : at; i >= 0; i--) {
    const versions = versionsAt(messages[i]!.key);
    if (versions) return versions;
  }
  return versionsAt(undefined);
}
