import { format } from "node:util";
import { BoughError } from "../../base/errors.ts";
import { ownerIsDead } from "../../base/owner.ts";
import type { Store } from "../../log/store.ts";
import { tokenFault } from "../../server/auth.ts";
import { createServer, serve as listen, type Server, type ServerOptions, type Serving } from "../../server/index.ts";
import { type Call, defineCommand, jsonArg, misuse, storeArg, wholeNumber } from "../command.ts";
import { configArg, prepareSetup, type Setup, showStore } from "../config/setup.ts";
import { isLoopback, isWildcard, ownNames, reachableUrls } from "../network.ts";
import { startPage } from "../start-page.ts";
import { openOwnStore } from "../store.ts";
import { type Terminal, toJson, visible } from "../terminal.ts";
import { keepToken } from "../token-file.ts";
import { packageVersion } from "../version.ts";

/** How long runs may take to end once the server is told to stop. */
const drainMs = 10_000;

const serveArgs = {
  ...configArg,
  store: { ...storeArg.store, description: "the store (default: BOUGH_STORE, the configuration's, ./.bough/bough.db)" },
  host: { type: "string", valueHint: "ADDRESS", description: "where to listen (default 127.0.0.1: this machine only)" },
  port: { type: "string", valueHint: "N", description: "default 4600; 0 for any that is free" },
  token: {
    type: "string",
    valueHint: "TOKEN",
    description: "what lets clients in (better: BOUGH_TOKEN; default: a random one)",
  },
  ...jsonArg,
} as const;

export const serve = defineCommand({
  args: serveArgs,
  examples: [
    "serve",
    "serve --config ./bough.config.ts --port 8080",
    "serve --store postgres://localhost/app",
    "serve --json",
  ],
  async run(call) {
    const { args, terminal, signal } = call;
    const setup = await prepareSetup(args, signal);
    if (args.token !== undefined && setup.config.auth)
      throw misuse(`${setup.file} has auth, so --token lets nobody in.`);
    const address = addressOf(call, setup);
    const token = tokenOf(args.token ?? (process.env.BOUGH_TOKEN || undefined) ?? setup.config.token);
    const store = await openOwnStore(setup.store);
    const left = await countLeft(store);
    const server = createServer(serverOptions(setup, { store, host: address.host, terminal, ...(token && { token }) }));
    const serving = await start(server, address);
    const kept = server.token === undefined ? undefined : keep(serving.port, server.token, terminal);
    const hasOwnToken = token !== undefined;
    const screen = { setup, serving, terminal, left, hasOwnToken, ...(kept && { tokenFile: kept.path }), ...address };
    if (args.json) printJson(screen);
    else printScreen(screen);
    await aborted(signal);
    kept?.forget();
    if (!args.json) terminal.note("Stopping: runs have 10 s to end, the rest is handed over. Again to stop at once.");
    await serving.close({ drainMs });
    if (!args.json) terminal.note("Stopped. What was not finished goes on at the next start.");
    return 0;
  },
});

/** A directory that can't be written to is no reason not to serve. */
function keep(port: number, token: string, terminal: Terminal): ReturnType<typeof keepToken> | undefined {
  try {
    return keepToken(port, token);
  } catch (error) {
    const why = visible((error as Error).message);
    terminal.note(`${terminal.paint("yellow", "warning")}: The token is in no file (${why}); chats need BOUGH_TOKEN.`);
    return undefined;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

interface Address {
  readonly host: string;
  readonly port: number;
}

function addressOf({ args }: Call<typeof serveArgs>, { config }: Setup): Address {
  const port = args.port === undefined ? (config.port ?? 4600) : wholeNumber(args.port, "port");
  if (port > 65_535) throw misuse("--port is at most 65535.");
  return { host: args.host ?? config.host ?? "127.0.0.1", port };
}

function tokenOf(token: string | undefined): string | undefined {
  const fault = token === undefined ? undefined : tokenFault(token);
  if (fault !== undefined) throw misuse(fault);
  return token;
}

function serverOptions(
  { agents, config }: Setup,
  { store, host, terminal, token }: { store: Store; host: string; terminal: Terminal; token?: string },
): ServerOptions {
  const { host: _host, port: _port, token: _token, ...options } = config;
  const warn = (...words: unknown[]) =>
    terminal.note(
      `${terminal.paint("yellow", "warning")}: ${format(...words)
        .split("\n")
        .map(visible)
        .join("\n")}`,
    );
  return {
    page: startPage,
    logger: { warn },
    ...(!isLoopback(host) && { hosts: ownNames(host) }),
    ...options,
    ...(token !== undefined && { token }),
    agents,
    store,
  };
}

/** How many runs a process of this machine has left behind by dying. */
async function countLeft(store: Store): Promise<number> {
  return (await store.listRuns()).filter(({ owner }) => ownerIsDead(owner)).length;
}

async function start(server: Server, { host, port }: Address): Promise<Serving> {
  try {
    return await listen(server, { host, port });
  } catch (error) {
    await server.close();
    throw explainListening(error as NodeJS.ErrnoException, { host, port });
  }
}

function explainListening(error: NodeJS.ErrnoException, { host, port }: Address): Error {
  const data = { host, port };
  if (error.code === "EADDRINUSE") {
    return misuse(`Port ${port} is taken, perhaps by another bough serve. Say --port N, or --port 0 for any.`, data);
  }
  if (error.code === "EACCES") return misuse(`Port ${port} needs rights that this process lacks; say --port N.`, data);
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") {
    return misuse(`This machine has no address "${visible(host)}".`, data);
  }
  return BoughError.is(error) ? error : new Error(`Listening failed: ${error.message}`, { cause: error });
}

interface Screen extends Address {
  readonly setup: Setup;
  readonly serving: Serving;
  readonly terminal: Terminal;
  /** Runs that were cut off and go on now. */
  readonly left: number;
  /** Whether the token was given: then it is nothing for the screen. */
  readonly hasOwnToken: boolean;
  /** Where the token is kept while the server runs. */
  readonly tokenFile?: string;
}

function printJson({ setup, serving, terminal, hasOwnToken, tokenFile }: Screen): void {
  const { url, startUrl, port } = serving;
  const agents = Object.keys(setup.agents);
  const store = showStore(setup.store);
  const places = { url, startUrl: hasOwnToken ? url : startUrl, port, store, ...(tokenFile && { tokenFile }) };
  terminal.print(toJson({ ...places, agents, pid: process.pid }));
}

function printScreen({ setup, serving, terminal, left, hasOwnToken, tokenFile, host }: Screen): void {
  const { url, startUrl, port } = serving;
  const { prefix = "" } = setup.config;
  const [first = url, ...others] = reachableUrls(host, port).map((each) => each + prefix);
  const isSecretShown = startUrl !== url && !hasOwnToken;
  const { hosts, origins } = setup.config;
  const rows: (readonly [string, string])[] = [
    ["Open", isSecretShown ? startUrl.replace(url, first) : first],
    ...others.map((each): [string, string] => ["or", each]),
    ["Chat", `npx bough chat --url ${first}${tokenFile === undefined ? "  (with BOUGH_TOKEN)" : ""}`],
    ...(tokenFile === undefined
      ? []
      : [["Token", `${tokenFile}, where chat finds it; elsewhere: BOUGH_TOKEN`] as const]),
    ["Store", showStore(setup.store)],
    ...(hosts ? [["Hosts", hosts.join(", ")] as const] : []),
    ...(origins ? [["Origins", origins.join(", ")] as const] : []),
    ...Object.entries(setup.about).map(([id, about]): [string, string] => ["Agent", `${id}: ${about}`]),
    ["Config", setup.file ?? "none here, so this is the demo agent (bough serve --help)"],
  ];
  terminal.print(`${terminal.paint("bold", "Bough")} ${packageVersion()} is serving.\n`);
  for (const [label, text] of rows) terminal.print(`  ${terminal.paint("dim", label.padEnd(7))}  ${visible(text)}`);
  terminal.print("");
  if (left > 0) terminal.print(`${left === 1 ? "A run was" : `${left} runs were`} cut off and will be taken up.\n`);
  if (!isLoopback(host)) warnOpen(terminal, host);
  terminal.print(terminal.paint("dim", "Ctrl-C stops it."));
}

function warnOpen(terminal: Terminal, host: string): void {
  const whom = isWildcard(host) ? "every network this machine is in" : `whoever reaches ${visible(host)}`;
  const sentence = `It listens to ${whom}, without encryption. Put a proxy with TLS before it.`;
  terminal.note(`${terminal.paint("yellow", "warning")}: ${sentence}\n`);
}
