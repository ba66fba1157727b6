// Partials: the output while a model is still writing it. It owns the text of one answer so far; it is
// parsed only when a reader asks for it.

import type { Json } from "../../base/json.ts";
import { PartialJson } from "../../base/partial-json.ts";
import type { ModelPart } from "../../models/index.ts";
import type { OutputForm, OutputForms } from "./plan.ts";

/**
 * The text grows by this share between two that are shown. Each carries the whole object, so the number of them has to
 * grow slower than the text for all together to cost no more than a multiple of it.
 */
const leastShare = 1 / 32;

export class Partials {
  readonly #plan: OutputForms;
  readonly #reader = new PartialJson();
  readonly #unread: string[] = [];
  #form: OutputForm | undefined;
  /** The call whose arguments are the output. */
  #callId: string | undefined;
  #length = 0;
  #shownLength = 0;
  #shownChanges = 0;

  constructor(plan: OutputForms) {
    this.#plan = plan;
    if (plan.mode === "native") this.#form = plan.form;
  }

  /** Whether the part adds to the output. */
  add(part: ModelPart): boolean {
    if (this.#plan.mode === "tool" && part.type === "tool-input-start" && !this.#form) {
      this.#form = this.#plan.forms.get(part.toolName);
      if (this.#form) this.#callId = part.id;
    }
    const isOutput =
      this.#plan.mode === "native"
        ? part.type === "text-delta"
        : part.type === "tool-input-delta" && part.id === this.#callId;
    if (!isOutput) return false;
    const { delta } = part as { delta: string };
    this.#unread.push(delta);
    this.#length += delta.length;
    return true;
  }

  /** What there is by now, if it is worth showing after what was shown last. */
  next(): Json | undefined {
    this.#reader.add(this.#unread.join(""));
    this.#unread.length = 0;
    const { changes, isDone } = this.#reader;
    const isLittle = this.#length - this.#shownLength < this.#length * leastShare;
    if (changes === this.#shownChanges || (isLittle && !isDone)) return undefined;
    const { value } = this.#reader;
    const output = value && this.#form?.partial(value);
    if (output === undefined) return undefined;
    this.#shownChanges = changes;
    this.#shownLength = this.#length;
    return output;
  }
}
