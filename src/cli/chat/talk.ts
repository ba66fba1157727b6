import type { Conversation } from "../../chat/conversation.ts";
import type { BranchRef } from "../../log/store.ts";
import type { Input } from "../../wire/index.ts";
import { misuse } from "../command.ts";
import type { Attachments } from "./attachments.ts";
import type { Screen } from "./screen.ts";

export interface GoToOptions {
  /** How many messages to show. */
  readonly recent?: number;
  /** Whether a command asked for it. The branch at which a chat starts is shown as a note instead. */
  readonly isAsked?: boolean;
}

/** The part of a chat that commands use. */
export interface Talk {
  readonly conversation: Conversation;
  readonly screen: Screen;
  /** The current branch; undefined before the first message. */
  readonly place: BranchRef | undefined;
  /** The files that go with the next message. */
  readonly attachments: Attachments;
  /** Switches to a branch and resumes its open turn, if any. Without a branch, the next message starts a new session. */
  goTo(place: BranchRef | undefined, options?: GoToOptions): Promise<void>;
  /** Runs a turn on the current branch; without input, the one that was cut off. */
  run(input: Input | undefined): Promise<void>;
  leave(): void;
}

/** The current branch; refused before the first message. */
export function placeOf({ place }: Talk): BranchRef {
  if (!place) throw misuse("There are no messages yet.");
  return place;
}
