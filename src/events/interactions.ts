// Interactions: questions of a run to a person or to a client, typed by their kind. What an answer may say is checked by
// answers.ts; these are the same forms for the compiler.

import type { Json, JsonObject } from "../base/json.ts";

/** What a `permission` question shows: the call that waits to be allowed. */
export type PermissionRequest = JsonObject & {
  readonly toolName: string;
  readonly input: Json;
  readonly description?: string;
  /** The call was cut off by a crash and may already have taken effect. */
  readonly again?: boolean;
};

/** What a `clarification` question shows: words, and answers to choose from. */
export type ClarificationRequest = JsonObject & {
  readonly question: string;
  readonly choices?: string[];
  /** The tool that asks. */
  readonly toolName?: string;
};

/** What a `continuation` question shows: the limit of iterations that the turn has reached. */
export type ContinuationRequest = JsonObject & { readonly iteration: number; readonly limit: number };

/** What a `client-tool` question shows: a call for the connected client to run. */
export type ClientToolRequest = JsonObject & { readonly toolName: string; readonly input: Json };

/** Changes which tools the model is offered from now on; part of any answer. */
interface ToolVisibility {
  readonly tools?: { readonly hide?: readonly string[]; readonly show?: readonly string[] };
}

/** The answer to a `permission` question. */
export interface PermissionAnswer extends ToolVisibility {
  readonly approved: boolean;
  /** `"always"` holds for the tool in the whole session (default `"once"`). */
  readonly choice?: "once" | "always";
  readonly reason?: string;
  /** For a call that was cut off: its result, instead of running it again. */
  readonly output?: string | { readonly type: "text" | "error-text" | "json" | "error-json"; readonly value: Json };
}

/** The answer to a `clarification` question. */
export interface ClarificationAnswer extends ToolVisibility {
  readonly answer: string | number | boolean | readonly Json[] | JsonObject;
}

/** The answer to a `continuation` question. */
export interface ContinuationAnswer extends ToolVisibility {
  readonly approved: boolean;
  /** How many further iterations to allow. */
  readonly iterations?: number;
  readonly reason?: string;
}

/** The answer to a `client-tool` question: what the tool returned, or how it failed. */
export interface ClientToolAnswer extends ToolVisibility {
  readonly output?: Json;
  readonly error?: Json;
}

/** The request and the answer of every kind of interaction. */
export interface InteractionForms {
  readonly permission: { readonly request: PermissionRequest; readonly answer: PermissionAnswer };
  readonly clarification: { readonly request: ClarificationRequest; readonly answer: ClarificationAnswer };
  readonly continuation: { readonly request: ContinuationRequest; readonly answer: ContinuationAnswer };
  readonly "client-tool": { readonly request: ClientToolRequest; readonly answer: ClientToolAnswer };
}

/** The kinds of interactions. */
export type InteractionKind = keyof InteractionForms;

export const interactionKinds = ["permission", "clarification", "continuation", "client-tool"] as const satisfies [
  ...InteractionKind[],
];

/** What tells one kind of interaction from the others. */
export type InteractionForm<Kind extends InteractionKind = InteractionKind> = {
  [K in Kind]: { readonly kind: K; readonly request: InteractionForms[K]["request"] };
}[Kind];

/** A question that waits for an answer; `kind` tells what its `request` holds. */
export type Interaction<Kind extends InteractionKind = InteractionKind> = InteractionForm<Kind> & {
  readonly id: string;
  readonly openedAt: number;
  readonly turnId?: string;
  readonly callId?: string;
  readonly expiresAt?: number;
};

/** The answer that an interaction of this kind takes. */
export type InteractionAnswer<Kind extends InteractionKind = InteractionKind> = InteractionForms[Kind]["answer"];
