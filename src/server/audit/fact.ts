// The only type of fact in an audit log. It has its own codec: conversations have no such facts, and clients don't read them as
// events.

import * as v from "valibot";
import { createCodec, kept } from "../../events/index.ts";

const text = v.optional(v.string());
const count = v.optional(v.pipe(v.number(), v.integer(), v.minValue(0)));

const auditRecorded = kept(
  "audit.recorded",
  v.strictObject({
    action: v.string(),
    requestId: text,
    transport: v.optional(v.picklist(["http", "socket"])),
    user: text,
    credential: text,
    address: text,
    agentId: text,
    sessionId: text,
    branchId: text,
    runId: text,
    checkpointId: text,
    contentId: text,
    interactionId: text,
    messageId: text,
    compactionId: text,
    inputId: text,
    createdId: text,
    mode: v.optional(v.picklist(["ask", "allow", "deny"])),
    decision: v.optional(v.picklist(["approved", "always", "denied"])),
    status: count,
    code: text,
    lost: count,
    reason: v.optional(v.picklist(["full", "limited"])),
  }),
);

/** An `AuditRecord` before it is appended to the log. */
export type AuditFact = v.InferOutput<typeof auditRecorded.schema> & { readonly at: number };

type AuditDraft = AuditFact & { readonly id: string; readonly type: typeof auditRecorded.type };

const codec = createCodec<AuditDraft, AuditDraft & { readonly seq: number }>([auditRecorded]);

export function encodeRecord(id: string, fact: AuditFact): { id: string; data: string } {
  const { data } = codec.encode({ ...fact, type: auditRecorded.type, id });
  return { id, data };
}

/** Undefined for a fact of another type: a log begins with the creation of its branch. */
export function decodeRecord(stored: { seq: number; id: string; data: string }): AuditFact | undefined {
  const fact = codec.decode(stored);
  if (fact.type !== auditRecorded.type) return undefined;
  const { seq: _seq, id: _id, type: _type, ...record } = fact;
  return record;
}
