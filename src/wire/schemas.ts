// Schemas of requests. All are strict: an unknown key is refused, not ignored.

import * as v from "valibot";
import type { JsonObject } from "../base/json.ts";
import { interactionKinds } from "../events/interactions.ts";

/** Ids that are valid in a path: no separators, no control characters, no leading "~" (reserved for the server), not only dots. */
export const idSchema = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(128),
  v.regex(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
    /^(?!~)(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f/\\]+$/u,
    'an id without slashes and control characters that does not begin with "~"',
  ),
  v.check((id) => !/[\ud800-\udfff]/u.test(id)),
);

const text = (max: number) => v.pipe(v.string(), v.maxLength(max));
const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER));
const positive = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000_000));
/** Checked as a whole: a record schema would drop the keys that must be refused. */
const object = v.custom<JsonObject>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "an object",
);
const metadata = v.optional(object);

const digits = /^\d{1,15}$/;
const number = v.pipe(v.string(), v.regex(digits, "an integer ≥ 0"), v.transform(Number));
const flag = v.pipe(
  v.picklist(["true", "false"]),
  v.transform((value) => value === "true"),
);
const pageSize = v.optional(v.pipe(number, v.minValue(1), v.maxValue(1000)));

const page = { limit: pageSize, cursor: v.optional(text(1024)) };

/** Which branches are listed. A filter only: a branch's visibility comes from its first fact; no request can set it. */
const visibility = v.optional(v.picklist(["shown", "all"]));

/** What is told of sessions beside their own data, as a list with commas. */
const included = ["title", "marks", "branches", "usage"] as const;
const include = v.optional(
  v.pipe(
    text(64),
    v.transform((value) => value.split(",")),
    v.array(v.picklist(included)),
  ),
);

/** Several event types, separated by commas. */
const types = v.optional(
  v.pipe(
    text(1024),
    v.minLength(1),
    v.transform((value) => value.split(",")),
    v.array(v.pipe(text(128), v.minLength(1))),
    v.check((list) => list.length <= 32),
  ),
);

const noQuery = v.strictObject({});
/** Metadata to search for. A record schema would drop keys such as "constructor", and match too much. */
const filter = v.custom<Readonly<Record<string, string>>>(
  (value) =>
    v.is(object, value) &&
    Object.entries(value).every(([key, each]) => /^[A-Za-z_][\w.-]{0,63}$/.test(key) && v.is(text(1024), each)),
  "an object of strings",
);

const details = {
  name: v.optional(text(1024)),
  description: v.optional(text(16_384)),
  tags: v.optional(v.pipe(v.array(text(256)), v.maxLength(64))),
  metadata,
};

const partOptions = { providerOptions: v.optional(object) };
const textPart = v.strictObject({ type: v.literal("text"), text: v.string(), ...partOptions });
/**
 * Base64, a data URL, a reference to stored content, or an address of the public web, which the model's provider opens. The
 * server opens none, and passes on none that could be of its own network.
 */
const fileText = v.pipe(
  v.string(),
  v.minLength(1),
  v.check(
    (value) => !/^[a-z][a-z0-9+.-]*:/i.test(value) || /^(bough-content|data):/i.test(value) || isPublicAddress(value),
    "a file must be base64, a data URL, a reference to stored content, or an https address with a public name",
  ),
);

/** Whether it is an https address with a name that has a dot; numbers in any spelling are addresses of machines. */
function isPublicAddress(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, password } = new URL(value);
  const isNamed = /\.[a-z][a-z0-9-]*$/i.test(hostname) && !/\.(local|localhost|internal|home\.arpa)$/i.test(hostname);
  return protocol === "https:" && isNamed && username === "" && password === "";
}
const filePart = v.strictObject({
  type: v.literal("file"),
  /** The provider specification's shape, or its text alone. */
  data: v.union([
    fileText,
    v.strictObject({ type: v.literal("data"), data: v.pipe(v.string(), v.minLength(1)) }),
    v.strictObject({ type: v.literal("url"), url: fileText }),
    v.strictObject({ type: v.literal("text"), text: v.string() }),
  ]),
  mediaType: v.optional(v.pipe(text(256), v.minLength(1))),
  filename: v.optional(text(1024)),
  ...partOptions,
});
const parts = v.pipe(v.array(v.variant("type", [textPart, filePart])), v.minLength(1));
const saying = v.union([v.pipe(v.string(), v.minLength(1)), parts]);
/** A user message. Messages of agents and tools are never accepted from a client. */
const userMessage = v.strictObject({ role: v.literal("user"), content: saying });

const limits = v.strictObject({
  iterations: v.optional(v.pipe(positive, v.maxValue(1000))),
  parallelTools: v.optional(v.pipe(positive, v.maxValue(64))),
  calls: v.optional(v.pipe(positive, v.maxValue(1000))),
  answerMs: v.optional(positive),
  turnMs: v.optional(positive),
  tokens: v.optional(positive),
  maxDepth: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(32))),
});

const settings = {
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(10))),
  topP: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
  topK: v.optional(positive),
  maxOutputTokens: v.optional(positive),
  presencePenalty: v.optional(v.number()),
  frequencyPenalty: v.optional(v.number()),
  stop: v.optional(v.pipe(v.array(text(256)), v.maxLength(16))),
  seed: v.optional(count),
};

/** Per-run overrides. A server applies permission mode and limits only if they are stricter than the agent's. */
const runConfigSchema = v.strictObject({
  ...settings,
  /** These four only if the server's program allows them. */
  compaction: v.optional(v.picklist(["off", "force"])),
  instructions: v.optional(text(65_536)),
  addInstructions: v.optional(text(65_536)),
  model: v.optional(v.pipe(text(256), v.minLength(1))),
  permissionMode: v.optional(v.picklist(["ask", "allow", "deny"])),
  limits: v.optional(limits),
});

const inputFields = {
  /** A text, the parts of one message, or messages; absent or empty resumes the open turn. */
  input: v.optional(v.union([v.string(), parts, v.pipe(v.array(userMessage), v.maxLength(100))])),
  /** What to do while another run is active (default "reject"). */
  ifActive: v.optional(v.picklist(["reject", "queue", "steer", "interrupt"])),
  /** What the run does with a question: wait for the answer, or park (default: the server's `questions`). */
  questions: v.optional(v.picklist(["wait", "park"])),
  config: v.optional(runConfigSchema),
  /** The JSON Schema of the answer, and how the model is asked for it (default "native"). */
  output: v.optional(v.strictObject({ schema: object, mode: v.optional(v.picklist(["native", "tool"])) })),
  /** The context for the agent's tools and hooks in this run; validated by the agent's schema. */
  context: v.optional(v.any()),
  metadata,
};
const editInputFields = {
  input: v.optional(
    v.union([
      v.pipe(v.string(), v.minLength(1)),
      parts,
      v.pipe(v.array(userMessage), v.minLength(1), v.maxLength(100)),
    ]),
  ),
  when: v.optional(v.picklist(["idle", "steer"])),
};
const interruptFields = { expectedRunId: v.optional(idSchema), reason: v.optional(text(1024)) };
/** The content of an answer depends on the question's kind (events/answers.ts), which is in the log. */
const responseFields = { interactionId: idSchema, answer: object };

/** A stored agent, in JSON. Tools are given by name; the server defines the names. */
export const agentConfigSchema = v.strictObject({
  model: v.pipe(text(256), v.regex(/^[^\s/]+\/\S+$/)),
  instructions: v.optional(text(32_768)),
  settings: v.optional(v.strictObject(settings)),
  limits: v.optional(limits),
  tools: v.optional(v.pipe(v.array(v.pipe(text(128), v.minLength(1))), v.maxLength(128))),
});

/** What is stored: an agent, or a graph. The server refuses both at once, and neither. */
const definition = { config: v.optional(agentConfigSchema), graph: v.optional(object) };

/** What to compact and how; strategies are the server's. */
const compactSchema = v.strictObject({
  keep: v.optional(v.strictObject({ turns: v.optional(count), tokens: v.optional(count) })),
  before: v.optional(idSchema),
  range: v.optional(
    v.strictObject({
      from: idSchema,
      to: v.optional(idSchema),
      previous: v.optional(count),
      whole: v.optional(v.picklist(["calls", "turns"])),
    }),
  ),
  retention: v.optional(v.picklist(["soft", "hard"])),
  instructions: v.optional(text(16_384)),
});

export const bodies = {
  createSession: v.strictObject({ sessionId: v.optional(idSchema), metadata }),
  searchSessions: v.strictObject({
    metadata: v.optional(filter),
    title: v.optional(v.pipe(text(256), v.minLength(1))),
    include: v.optional(v.array(v.picklist(included))),
    limit: v.optional(v.pipe(positive, v.maxValue(1000))),
    cursor: v.optional(text(1024)),
  }),
  ensureSession: v.strictObject({ metadata }),
  updateSession: v.strictObject({ metadata: object }),
  createBranch: v.strictObject({ branchId: v.optional(idSchema), ...details }),
  fork: v.strictObject({
    newBranchId: v.optional(idSchema),
    fromMessageId: v.optional(idSchema),
    fromMessageIndex: v.optional(count),
    fromSeq: v.optional(count),
    state: v.optional(v.picklist(["fork-point", "current", "none"])),
    compaction: v.optional(v.union([v.picklist(["inherit", "none"]), compactSchema])),
    ...details,
  }),
  updateBranch: v.strictObject({
    name: v.optional(v.nullable(text(1024))),
    description: v.optional(v.nullable(text(16_384))),
    tags: v.optional(v.nullable(v.pipe(v.array(text(256)), v.maxLength(64)))),
    metadata,
  }),
  revert: v.strictObject({
    toMessageId: v.optional(idSchema),
    toMessageIndex: v.optional(count),
    toSeq: v.optional(count),
    expectedSeq: v.optional(count),
  }),
  saveCheckpoint: v.strictObject({ checkpointId: v.optional(idSchema), label: v.optional(text(1024)) }),
  forkCheckpoint: v.strictObject({ newBranchId: v.optional(idSchema) }),
  compact: compactSchema,
  uncompact: v.strictObject({ compactionId: v.optional(idSchema) }),
  checkCompaction: v.strictObject({
    compactionId: v.optional(idSchema),
    questions: v.optional(v.pipe(v.array(v.pipe(text(4096), v.minLength(1))), v.minLength(1), v.maxLength(50))),
    count: v.optional(v.pipe(positive, v.maxValue(50))),
  }),
  input: v.strictObject(inputFields),
  interrupt: v.strictObject(interruptFields),
  respond: v.strictObject(responseFields),
  signal: v.strictObject({
    name: v.pipe(text(256), v.minLength(1)),
    payload: v.optional(v.any()),
    id: v.optional(idSchema),
  }),
  createAgent: v.strictObject({
    agentId: v.optional(idSchema),
    name: v.optional(text(1024)),
    ...definition,
    metadata,
  }),
  updateAgent: v.strictObject(definition),
  editInput: v.strictObject(editInputFields),
  empty: v.strictObject({}),
};

export const queries = {
  none: noQuery,
  page: v.strictObject(page),
  listBranches: v.strictObject({ ...page, visibility, changedSince: v.optional(number) }),
  sessions: v.strictObject({ ...page, include }),
  session: v.strictObject({ include }),
  tree: v.strictObject({ visibility }),
  deleteBranch: v.strictObject({ recursive: v.optional(flag) }),
  revokePermission: v.strictObject({ agentId: v.optional(idSchema) }),
  events: v.strictObject({
    after: v.optional(number),
    before: v.optional(number),
    limit: pageSize,
    turnId: v.optional(idSchema),
    runId: v.optional(idSchema),
    type: v.optional(v.pipe(text(128), v.minLength(1))),
    types,
    order: v.optional(v.picklist(["oldest", "newest"])),
  }),
  live: v.strictObject({ after: v.optional(number), events: v.optional(v.picklist(["own", "tree"])) }),
  changes: v.strictObject({ after: v.optional(v.pipe(text(256), v.minLength(1))) }),
  state: v.strictObject({ last: pageSize, before: v.optional(idSchema) }),
  messages: v.strictObject({ last: pageSize, before: v.optional(v.pipe(text(1024), v.minLength(1))) }),
  graph: v.strictObject({
    format: v.optional(v.picklist(["json", "mermaid"])),
    sessionId: v.optional(idSchema),
    branchId: v.optional(idSchema),
  }),
  interactions: v.strictObject({
    sessionId: v.optional(idSchema),
    kind: v.optional(v.picklist(interactionKinds)),
    agentId: v.optional(idSchema),
    limit: pageSize,
    cursor: v.optional(text(2048)),
  }),
  runs: v.strictObject({ agent: v.optional(v.picklist(["own", "any"])), ...page }),
  audit: v.strictObject({
    order: v.optional(v.picklist(["newest", "oldest"])),
    after: v.optional(v.pipe(v.string(), v.regex(/^\d{4}-\d{2}-\d{2}\.\d{1,15}$/))),
    limit: pageSize,
    session: v.optional(idSchema),
    action: v.optional(text(64)),
    user: v.optional(text(256)),
    outcome: v.optional(v.picklist(["done", "refused"])),
  }),
};

/** What a client sends over a WebSocket; `id` comes back with the reply. */
export const clientFrameSchema = v.variant("type", [
  v.strictObject({
    type: v.literal("input"),
    id: v.optional(text(128)),
    key: v.optional(v.pipe(text(256), v.minLength(1))),
    ...inputFields,
  }),
  v.strictObject({ type: v.literal("interrupt"), id: v.optional(text(128)), ...interruptFields }),
  v.strictObject({ type: v.literal("response"), id: v.optional(text(128)), ...responseFields }),
]);

export type AgentConfig = v.InferOutput<typeof agentConfigSchema>;
export type ForkBody = v.InferOutput<typeof bodies.fork>;
export type InputBody = v.InferOutput<typeof bodies.input>;
export type EditInputBody = v.InferOutput<typeof bodies.editInput>;
export type InterruptBody = v.InferOutput<typeof bodies.interrupt>;
export type SignalBody = v.InferOutput<typeof bodies.signal>;
export type ResponseBody = v.InferOutput<typeof bodies.respond>;
export type EventsQuery = v.InferOutput<typeof queries.events>;
export type AuditQuery = v.InferOutput<typeof queries.audit>;
export type ClientFrame = v.InferOutput<typeof clientFrameSchema>;
