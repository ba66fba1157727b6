// The chat's command about background tasks.

import { oneLine } from "../../chat/text.ts";
import { misuse } from "../command.ts";
import { placeOf, type Talk } from "./talk.ts";

const usage = "Usage: /tasks [rm N], where N is a number in the list.";

/** Lists the tasks, or cancels one of them. */
export async function tasks(chat: Talk, typed: string): Promise<void> {
  const { conversation, screen } = chat;
  const place = placeOf(chat);
  const [, n] = /^rm\s+(\d{1,6})$/.exec(typed) ?? [];
  if (typed !== "" && n === undefined) throw misuse(usage);
  const going = await conversation.tasks(place);
  if (n === undefined) return screen.tell({ type: "tasks", tasks: going });
  const task = going[Number(n) - 1];
  if (!task) throw misuse(going.length === 0 ? "No background task goes on." : usage);
  await conversation.cancelTask(place, task.taskId);
  screen.note(`Cancelled “${oneLine(task.name, 60)}”.`);
}
