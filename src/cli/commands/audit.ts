import { systemClock } from "../../base/clock.ts";
import { moment, shorten, visible } from "../../chat/text.ts";
import { type AuditRequest, createClient } from "../../client/index.ts";
import { auditStore } from "../../server/audit/place.ts";
import { readAudit } from "../../server/audit/reader.ts";
import type { AuditPage, AuditRecord } from "../../wire/index.ts";
import { type Call, defineCommand, jsonArg, misuse, storeArg, wholeNumber } from "../command.ts";
import { serverArgs, serverAt } from "../server.ts";
import { chooseStore, withStore } from "../store.ts";
import type { Terminal } from "../terminal.ts";

const auditArgs = {
  ...serverArgs,
  store: { ...storeArg.store, description: "without --url: the store (default: BOUGH_STORE, else ./.bough/bough.db)" },
  tenant: { type: "string", valueHint: "NAME", description: "without --url: the tenant (default: the server's own)" },
  session: { type: "string", valueHint: "ID", description: "only records of this session" },
  action: {
    type: "string",
    valueHint: "NAME",
    description: "only this action, such as submitInput, respond or deleteSession",
  },
  user: { type: "string", valueHint: "NAME", description: "only actions of this user" },
  refused: { type: "boolean", description: "only refused actions" },
  limit: { type: "string", valueHint: "N", default: "20", description: "how many of the newest records (default 20)" },
  follow: { type: "boolean", alias: "f", description: "wait for new records until Ctrl-C" },
  ...jsonArg,
} as const;

type AuditCall = Call<typeof auditArgs>;
type Read = (query: AuditRequest) => Promise<AuditPage>;

interface Source {
  readonly read: Read;
  /** Whether a record is shown while following: each poll of a server's audit log is itself a record. */
  readonly isNews: (record: AuditRecord) => boolean;
  /** The polling interval while following. */
  readonly everyMs: number;
}

const pageSize = 1000;

export const audit = defineCommand({
  args: auditArgs,
  examples: [
    "audit",
    "audit --refused --limit 100",
    "audit --session user-123 --json",
    "audit --url http://127.0.0.1:4600 -f",
  ],
  async run(call) {
    const { args } = call;
    const { store, tenant } = args;
    const server = serverAt(args, { store, tenant });
    if (server) {
      const client = createClient(server);
      const isNews = ({ action }: AuditRecord) => action !== "audit" || args.action === "audit";
      await show(call, { read: (query) => client.audit(query), isNews, everyMs: 5000 });
      return 0;
    }
    await withStore(chooseStore(store), {}, async (opened) => {
      const own = auditStore(opened, tenant ?? "");
      await show(call, { read: (query) => readAudit(own, query), isNews: () => true, everyMs: 1000 });
    });
    return 0;
  },
});

async function show({ args, terminal, signal }: AuditCall, { read, isNews, everyMs }: Source): Promise<void> {
  const { session, action, user } = args;
  const filter = {
    ...(session !== undefined && { session }),
    ...(action !== undefined && { action }),
    ...(user !== undefined && { user }),
    ...(args.refused && { outcome: "refused" as const }),
  };
  const print = (record: AuditRecord) => terminal.print(args.json ? JSON.stringify(record) : lineOf(terminal, record));
  const limit = wholeNumber(args.limit, "limit");
  if (limit === 0) throw misuse("--limit must be an integer ≥ 1.");
  const newest = (await readNewest(read, filter, limit)).reverse();
  for (const record of newest) print(record);
  if (newest.length === 0) terminal.note("No records.");
  if (!args.follow) return;
  for (let after = newest.at(-1)?.id; !signal.aborted; ) {
    const page = await read({ ...filter, order: "oldest", limit: pageSize, ...(after !== undefined && { after }) });
    for (const record of page.records) if (isNews(record)) print(record);
    after = page.cursor ?? after;
    if (page.records.length < pageSize) await systemClock.sleep(everyMs, signal);
  }
}

/** The newest records, newest first. */
async function readNewest(read: Read, filter: AuditRequest, wanted: number): Promise<AuditRecord[]> {
  const records: AuditRecord[] = [];
  let after: string | undefined;
  while (records.length < wanted) {
    const limit = Math.min(wanted - records.length, pageSize);
    const page = await read({ ...filter, limit, ...(after !== undefined && { after }) });
    records.push(...page.records);
    after = page.cursor;
    if (after === undefined) break;
  }
  return records;
}

/** Time, outcome, action, user, and as many details as fit. */
function lineOf(terminal: Terminal, record: AuditRecord): string {
  const { id: _id, at, action, status, code, user, credential, requestId, transport, address, ...rest } = record;
  const outcome = code === undefined ? String(status ?? "") : `${status} ${code}`;
  const who = user ?? credential ?? "-";
  const start = `${moment(at)}  ${outcome.padEnd(16)}  ${action.padEnd(16)}  ${visible(who).padEnd(12)}  `;
  const room = Math.max(terminal.columns - start.length, 20);
  const all = Object.entries({ ...rest, address, transport, requestId }).filter(([, value]) => value !== undefined);
  const details = all.map(([name, value]) => `${name}=${value}`);
  const isRefused = (status ?? 0) >= 400;
  return (
    (isRefused ? terminal.paint("yellow", start) : start) +
    terminal.paint("dim", shorten(visible(details.join(" ")), room))
  );
}
