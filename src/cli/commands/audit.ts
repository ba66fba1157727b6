import { systemClock } from "../../base/clock.ts";
import { type AuditRequest, createClient } from "../../client/index.ts";
import { auditStore } from "../../server/audit/place.ts";
import { readAudit } from "../../server/audit/reader.ts";
import type { AuditPage, AuditRecord } from "../../wire/index.ts";
import { type Call, defineCommand, jsonArg, misuse, storeArg, wholeNumber } from "../command.ts";
import { chooseStore, withStore } from "../store.ts";
import { moment, shorten, type Terminal, visible } from "../terminal.ts";

const auditArgs = {
  url: { type: "string", valueHint: "URL", description: "ask a server, by the address that bough serve prints" },
  token: {
    type: "string",
    valueHint: "TOKEN",
    description: "its token (default: the one in the URL, else BOUGH_TOKEN)",
  },
  store: { ...storeArg.store, description: "without a server: read the store (default as elsewhere)" },
  tenant: { type: "string", valueHint: "NAME", description: "with a store: whose log (default: the server's own)" },
  session: { type: "string", valueHint: "ID", description: "only what was done to this session" },
  action: { type: "string", valueHint: "NAME", description: "only this action: submitInput, respond, deleteSession …" },
  user: { type: "string", valueHint: "NAME", description: "only what this user did" },
  refused: { type: "boolean", description: "only what was refused" },
  limit: { type: "string", valueHint: "N", default: "20", description: "how many of the newest (default 20)" },
  follow: { type: "boolean", alias: "f", description: "wait for more, until Ctrl-C" },
  ...jsonArg,
} as const;

type AuditCall = Call<typeof auditArgs>;
type Read = (query: AuditRequest) => Promise<AuditPage>;

interface Source {
  readonly read: Read;
  /** Whether a record is shown while the log is followed: each look at a server's log is a record, too. */
  readonly isNews: (record: AuditRecord) => boolean;
  /** How often a log that is followed is looked at. */
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
    if (args.url !== undefined) {
      if (args.store !== undefined || args.tenant !== undefined) {
        throw misuse("A server reads its own store: --url goes without --store and --tenant.");
      }
      const client = createClient(serverAt(args.url, args.token));
      const isNews = ({ action }: AuditRecord) => action !== "audit" || args.action === "audit";
      await show(call, { read: (query) => client.audit(query), isNews, everyMs: 5000 });
      return 0;
    }
    if (args.token !== undefined) throw misuse("--token goes with --url.");
    await withStore(chooseStore(args.store), {}, async (store) => {
      const own = auditStore(store, args.tenant ?? "");
      await show(call, { read: (query) => readAudit(own, query), isNews: () => true, everyMs: 1000 });
    });
    return 0;
  },
});

function serverAt(given: string, named: string | undefined): { url: string; token?: string } {
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  if (parsed?.protocol !== "http:" && parsed?.protocol !== "https:")
    throw misuse("--url is an http:// or https:// URL.");
  const token = named ?? new URLSearchParams(parsed.hash.slice(1)).get("token") ?? process.env.BOUGH_TOKEN;
  parsed.hash = "";
  return { url: parsed.href.replace(/\/+$/, ""), ...(token && { token }) };
}

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
  if (limit === 0) throw misuse("--limit is at least 1.");
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

/** The newest that fit, newest first. */
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

/** When, outcome, what, who, and the rest as far as there is room. */
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
