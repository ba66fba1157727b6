// The chat's command about inputs that wait for a turn. A chat reads no line while its run is going on (Chat-1), so they come from
// elsewhere: other clients of the branch, or a chat that was left.

import { oneLine } from "../../chat/text.ts";
import { misuse } from "../command.ts";
import { saidIn } from "./screen.ts";
import { placeOf, type Talk } from "./talk.ts";

const usage = "Usage: /queue [edit N TEXT | rm N], where N is a number in the list.";

/** Lists the queue, or changes or withdraws one of it. */
export async function queue(chat: Talk, typed: string): Promise<void> {
  const { conversation, screen } = chat;
  const place = placeOf(chat);
  const [, verb, n, text = ""] = /^(\S+)(?:\s+(\S+))?(?:\s+([\s\S]+))?$/.exec(typed) ?? [];
  const isEdit = verb === "edit" && text !== "";
  if (verb !== undefined && !isEdit && !(verb === "rm" && text === "")) throw misuse(usage);
  const inputs = await conversation.queue(place);
  if (verb === undefined) return screen.tell({ type: "queue", inputs });
  const input = /^\d{1,6}$/.test(n ?? "") ? inputs[Number(n) - 1] : undefined;
  if (!input) throw misuse(inputs.length === 0 ? "Nothing is queued." : usage);
  if (isEdit) await conversation.editInput(place, input.id, text);
  else await conversation.withdrawInput(place, input.id);
  screen.note(`${isEdit ? "Changed" : "Withdrew"} “${oneLine(saidIn(input), 60)}”.`);
}
