import { BoughError } from "../../base/errors.ts";
import { visible } from "../../chat/text.ts";
import type { Store } from "../../log/store.ts";
import { asleepOwner, isAsleep } from "../../sessions/claims.ts";
import type { RedisDurability } from "../../stores/redis/index.ts";
import { isSafe, loadDriver } from "../../stores/sqlite/driver.ts";
import { defineCommand, jsonArg, storeWord } from "../command.ts";
import { configFindings, type Finding, fileFindings } from "../file-findings.ts";
import { placeOf, showUrl } from "../place.ts";
import { chooseStore, withStore } from "../store.ts";
import { count, type Style, type Terminal, toJson } from "../terminal.ts";
import { packageVersion } from "../version.ts";

export const doctor = defineCommand({
  args: {
    ...storeWord,
    ...jsonArg,
  },
  examples: ["doctor", "doctor postgres://localhost/app", "doctor sqlite:./bough.db --json"],
  async run({ args, terminal }) {
    const findings = [bough(), node(), await sqlite(), ...configFindings(), ...(await storeFindings(args.url))];
    const isWell = findings.every(({ status }) => status !== "problem");
    if (args.json) terminal.print(toJson({ ok: isWell, findings }));
    else printFindings(terminal, findings);
    return isWell ? 0 : 1;
  },
});

const oldestNode = [20, 19] as const;
/** Major versions without security fixes, and since when. */
const endedNodes: Readonly<Record<number, string>> = { 20: "April 2026", 21: "June 2024", 23: "June 2025" };

function bough(): Finding {
  return { what: "Bough", status: "ok", detail: packageVersion() };
}

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isFine = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  const finding = { what: "Node", detail: process.versions.node };
  const ended = endedNodes[major];
  if (isFine && ended !== undefined) {
    const advice = `Node ${major} has had no security fixes since ${ended}. Install Node 22 or newer.`;
    return { ...finding, status: "warning", advice };
  }
  if (isFine) return { ...finding, status: "ok" };
  return { ...finding, status: "problem", advice: `Install Node ${oldestNode.join(".")} or newer.` };
}

/** Only a warning: other stores don't need SQLite. */
async function sqlite(): Promise<Finding> {
  const what = "SQLite";
  try {
    const driver = await loadDriver();
    const database = new driver.DatabaseSync(":memory:");
    const { version } = database.prepare("SELECT sqlite_version() AS version").get() as { version: string };
    database.close();
    const isBuiltin = driver === (process.getBuiltinModule?.("node:sqlite") as unknown);
    const detail = `${version}, ${isBuiltin ? "built into Node" : "from @photostructure/sqlite"}`;
    if (isSafe(version)) return { what, status: "ok", detail };
    const advice = "This version can corrupt files: run `npm install @photostructure/sqlite`, or use a newer Node.";
    return { what, status: "warning", detail, advice };
  } catch (error) {
    return { what, status: "warning", detail: "none", advice: (error as Error).message };
  }
}

async function storeFindings(named: string | undefined): Promise<Finding[]> {
  let url: string;
  try {
    url = chooseStore(named, "the store's URL");
  } catch (error) {
    return [{ what: "Store", status: "warning", detail: "no store given", advice: (error as Error).message }];
  }
  try {
    return await withStore(url, {}, async (store) => [
      { what: "Store", status: "ok", detail: `${showUrl(url)} (${store.kind})` },
      ...fileFindings(placeOf(url)),
      durability(store),
      ...(await runs(store)),
      ...(await contents(store)),
    ]);
  } catch (error) {
    const code = BoughError.is(error) ? error.code : "unexpected";
    return [{ what: "Store", status: "problem", detail: `${showUrl(url)} (${code})`, advice: adviceFor(code, error) }];
  }
}

function adviceFor(code: string, error: unknown): string {
  const { message } = error as Error;
  if (code === "store_locked") return `${message} Stop that process, or use its server.`;
  if (code === "store_too_new") return `${message} Update Bough.`;
  if (code === "store_corrupt") return `${message} Restore it from a backup; sessions that can be read can be copied.`;
  return message;
}

function durability(store: Store): Finding {
  const what = "Durability";
  const told = (store as Store & { durability?: RedisDurability }).durability;
  if (told) return { what, status: told.powerLoss === "nothing" ? "ok" : "warning", detail: told.description };
  if (store.kind === "postgres-async") {
    const detail = "a crash of the server can lose the last acknowledged writes";
    return { what, status: "warning", detail, advice: "Set synchronous_commit to on." };
  }
  const detail = store.kind === "postgres" ? "the server waits for its disk" : "survives kill -9 and power loss";
  return { what, status: "ok", detail };
}

/** A claim whose lease has expired was left by a crash. */
async function runs(store: Store): Promise<Finding[]> {
  const claims = await store.listRuns();
  const asleep = claims.filter((claim) => isAsleep(claim, Date.now())).length;
  const left = claims.filter(({ owner, expiresAt }) => owner !== asleepOwner && expiresAt <= Date.now()).length;
  const sleepers = asleep > 0 ? `, ${asleep} asleep` : "";
  const detail = `${claims.length - left - asleep} active, ${left} interrupted by a crash${sleepers}`;
  if (left === 0) return [{ what: "Runs", status: "ok", detail }];
  return [
    { what: "Runs", status: "warning", detail, advice: "Call agent.recover() or start bough serve to resume them." },
  ];
}

async function contents(store: Store): Promise<Finding[]> {
  const { sessions, branches, events, problems } = await store.maintain();
  const detail = [count(sessions, "session"), count(branches, "branch"), count(events, "fact")].join(", ");
  const found = problems.map(({ code, detail, sessionId, branchId }): Finding => {
    const where = [sessionId, branchId].filter((part) => part !== undefined).join("/");
    const text = where === "" ? detail : `${where}: ${detail}`;
    if (code === "repaired") return { what: code, status: "warning", detail: text };
    return {
      what: code,
      status: "problem",
      detail: text,
      advice: "Copy the readable sessions with bough store copy; restore the rest from a backup.",
    };
  });
  return [{ what: "Contents", status: "ok", detail }, ...found];
}

const marks: Record<Finding["status"], { mark: string; style: Style }> = {
  ok: { mark: "ok  ", style: "green" },
  warning: { mark: "warn", style: "yellow" },
  problem: { mark: "FAIL", style: "red" },
};

function printFindings(terminal: Terminal, findings: readonly Finding[]): void {
  const width = Math.max(...findings.map(({ what }) => what.length));
  for (const { what, status, detail, advice } of findings) {
    const { mark, style } = marks[status];
    terminal.print(`${terminal.paint(style, mark)}  ${what.padEnd(width)}  ${visible(detail)}`);
    if (advice) terminal.print(`${" ".repeat(width + 8)}→ ${visible(advice)}`);
  }
}
