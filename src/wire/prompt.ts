// What a model was sent, and how two prompts differ. One shape near and far.

import type { JsonObject } from "../base/json.ts";
import type { Message } from "../events/index.ts";

/** Where a message of a prompt comes from. */
export type PromptSource =
  | { readonly type: "instructions" }
  | {
      readonly type: "message";
      readonly messageId: string;
      /** The compaction that keeps it word for word, and whether it is pinned. */
      readonly keptBy?: string;
      readonly isPinned?: true;
      /** The clearings that show outputs of it as a note. */
      readonly clearedBy?: readonly string[];
    }
  /** What a compaction shows in place of messages. */
  | { readonly type: "compaction"; readonly compactionId: string }
  /** What a hook put there, and the message in whose place it stands. */
  | { readonly type: "hook"; readonly messageId?: string }
  /** Texts that change from call to call, such as a plan. */
  | { readonly type: "reminder" };

/** A message as a model was sent it. */
export interface SentMessage extends Pick<Message, "role" | "content" | "providerOptions"> {
  readonly source: PromptSource;
}

/** What a model was sent for a reply. */
export interface SentPrompt {
  readonly sessionId: string;
  readonly branchId: string;
  /** The reply. */
  readonly messageId: string;
  /** The position in the log up to which the model saw the branch. */
  readonly upTo: number;
  /** The hash of the whole prompt that was recorded when it was sent. */
  readonly sha: string;
  /** Whether what is told here has that hash. */
  readonly isVerified: boolean;
  /** What could not be kept when it was sent, because it is too long or no JSON; then the prompt is not verified. */
  readonly missing: readonly ("instructions" | "tools" | "settings" | "reminders" | "edits")[];
  /** The names of headers and credentials, whose values are never kept. */
  readonly withheld: readonly string[];
  readonly model: { readonly provider: string; readonly modelId: string };
  readonly messages: readonly SentMessage[];
  readonly tools: readonly JsonObject[];
  /** The other options of the call, as the provider specification has them. */
  readonly settings: JsonObject;
}

/** What made two prompts differ. */
export type PromptChange =
  | "tools"
  | "instructions"
  | "compaction"
  | "clearing"
  | "hook"
  | "reminder"
  | "reasoning"
  | "messages";

/** One side of the first difference between two prompts. */
export interface DifferingPart {
  /** A tool, or a message by its source. */
  readonly source: PromptSource | { readonly type: "tool"; readonly name: string };
  /** Its text from a little before the difference on. */
  readonly excerpt: string;
}

/** How a prompt differs from an earlier one, in the order in which providers cache: tools, instructions, messages. */
export interface PromptDiff {
  /** Whether all of the earlier prompt, the reminders at its end aside, begins the later one: the provider's cache holds. */
  readonly isPrefix: boolean;
  /** The first part that differs; absent when neither has one. A side is absent when its prompt ends there. */
  readonly first?: {
    readonly change: PromptChange;
    /** The compaction, where one began or ended to hide messages. */
    readonly compactionId?: string;
    readonly from?: DifferingPart;
    readonly to?: DifferingPart;
  };
  /** The length of the common beginning, of the earlier and of the later prompt. */
  readonly bytes: { readonly shared: number; readonly from: number; readonly to: number };
  /** The share of the earlier prompt that the later one begins with. */
  readonly share: number;
  /** The names of settings that differ; another model or tool choice may miss the cache by itself. */
  readonly settings: readonly string[];
  /** Whether both prompts are verified. */
  readonly isVerified: boolean;
}
