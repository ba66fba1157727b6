// Arguments of the commands about a branch's pinned messages.

import type { ArgDef } from "citty";
import { storeArg } from "./command.ts";

export const pinArgs = {
  session: { type: "positional", valueHint: "SESSION", required: true, description: "the session's id" },
} as const satisfies Record<string, ArgDef>;

export const pinOptions = {
  branch: { type: "string", valueHint: "ID", description: "the branch; needed if the session has several" },
  ...storeArg,
} as const satisfies Record<string, ArgDef>;

export const messageWord = {
  message: {
    type: "positional",
    valueHint: "MESSAGE",
    required: true,
    description: "the message's id, as bough events tail shows it",
  },
} as const satisfies Record<string, ArgDef>;
