import { format } from "node:util";
import { BoughError } from "../../base/errors.ts";
import { ownerIsDead } from "../../base/owner.ts";
import { visible } from "../../chat/text.ts";
import type { Store } from "../../log/store.ts";
import { tokenFault } from "../../server/auth.ts";
import { createServer, serve as listen, type Server, type ServerOptions, type Serving } from "../../server/index.ts";
import { type Call, defineCommand, jsonArg, misuse, storeArg, wholeNumber } from "../command.ts";
import { configArg, modelName, prepareSetup, type Setup, showStore } from "../config/setup.ts";
import { isLoopback, isWildcard, ownNames, reachableUrls } from "../network.ts";
import { openOwnStore } from "../store.ts";
import { count, type Terminal, toJson } from "../terminal.ts";
import { keepToken } from "../token-file.ts";
import { packageVersion } from "../version.ts";

/** How long runs may take to finish when the server stops. */
const drainMs = 10_000;

const serveArgs = {
  ...configArg,
  store: {
    ...storeArg.store,
    description: "the store (default: BOUGH_STORE, else the configuration's, else ./.bough/bough.db)",
  },
  host: {
    type: "string",
    valueHint: "ADDRESS",
    description: "the address to listen on (default 127.0.0.1: this machine only)",
  },
  port: { type: "string", valueHint: "N", description: "the port (default 4600; 0 for any free one)" },
  token: {
    type: "string",
    valueHint: "TOKEN",
    description: "the clients' token (default: random); prefer BOUGH_TOKEN, which others can't see",
  },
  studio: {
    type: "boolean",
    default: true,
    description: "Studio at the address that is printed (--no-studio leaves it out)",
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
      throw misuse(`--token has no effect, because ${setup.file} sets auth. Leave it out.`);
    const address = addressOf(call, setup);
    const token = tokenOf(args.token ?? (process.env.BOUGH_TOKEN || undefined) ?? setup.config.token);
    const store = await openOwnStore(setup.store);
    const left = await countLeft(store);
    const server = createServer(
      serverOptions(setup, {
        store,
        host: address.host,
        terminal,
        isStudioShown: args.studio,
        ...(token && { token }),
      }),
    );
    const serving = await start(server, address);
    const kept = server.token === undefined ? undefined : keep(serving.port, server.token, terminal);
    const hasOwnToken = token !== undefined;
    const screen = { setup, serving, terminal, left, hasOwnToken, ...(kept && { tokenFile: kept.path }), ...address };
    if (args.json) printJson(screen);
    else printScreen(screen);
    await aborted(signal);
    kept?.forget();
    if (!args.json) terminal.note("Stopping. Runs have 10 s to finish. Press Ctrl-C again to stop immediately.");
    await serving.close({ drainMs });
    if (!args.json) terminal.note("Stopped. Unfinished turns are resumed at the next start.");
    return 0;
  },
});

/** The server also works in a directory that is not writable. */
function keep(port: number, token: string, terminal: Terminal): ReturnType<typeof keepToken> | undefined {
  try {
    return keepToken(port, token);
  } catch (error) {
    const why = visible((error as Error).message);
    terminal.note(
      `${terminal.paint("yellow", "warning")}: The token file can't be written (${why}). Set BOUGH_TOKEN for bough chat.`,
    );
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
  if (port > 65_535) throw misuse("--port must be an integer from 0 to 65535.");
  return { host: args.host ?? config.host ?? "127.0.0.1", port };
}

function tokenOf(token: string | undefined): string | undefined {
  const fault = token === undefined ? undefined : tokenFault(token);
  if (fault !== undefined) throw misuse(fault);
  return token;
}

interface ServeChoices {
  readonly store: Store;
  readonly host: string;
  readonly terminal: Terminal;
  readonly token?: string;
  readonly isStudioShown: boolean;
}

function serverOptions(
  { agents, config }: Setup,
  { store, host, terminal, token, isStudioShown }: ServeChoices,
): ServerOptions {
  const { host: _host, port: _port, token: _token, ...options } = config;
  const isRootFree = !options.assets || Boolean(options.assets.path);
  const warn = (...words: unknown[]) =>
    terminal.note(
      `${terminal.paint("yellow", "warning")}: ${format(...words)
        .split("\n")
        .map(visible)
        .join("\n")}`,
    );
  return {
    // An app or a page of the program at the root takes Studio's place.
    ...(isStudioShown && isRootFree && { studio: true }),
    logger: { warn },
    ...(!isLoopback(host) && { hosts: ownNames(host) }),
    ...options,
    ...(token !== undefined && { token }),
    agents,
    store,
  };
}

/** How many runs were interrupted by the death of a process on this machine. */
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
    return misuse(
      `Port ${port} is in use, perhaps by another bough serve. Choose another with --port N, or any free one with --port 0.`,
      data,
    );
  }
  if (error.code === "EACCES")
    return misuse(`This process is not allowed to listen on port ${port}. Choose another with --port N.`, data);
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") {
    return misuse(`This machine has no address "${visible(host)}".`, data);
  }
  return BoughError.is(error) ? error : new Error(`Listening failed: ${error.message}`, { cause: error });
}

interface Screen extends Address {
  readonly setup: Setup;
  readonly serving: Serving;
  readonly terminal: Terminal;
  /** Interrupted runs that are resumed now. */
  readonly left: number;
  /** Whether the user gave the token: then it is not printed. */
  readonly hasOwnToken: boolean;
  /** The token file, which exists while the server runs. */
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
    ["Chat", `npx bough chat --url ${first}`],
    [
      "Token",
      tokenFile === undefined
        ? "set BOUGH_TOKEN for chat"
        : `in ${tokenFile}; in other directories, set BOUGH_TOKEN for chat`,
    ],
    ["Store", showStore(setup.store)],
    ...(hosts ? [["Hosts", hosts.join(", ")] as const] : []),
    ...(origins ? [["Origins", origins.join(", ")] as const] : []),
    ...Object.entries(setup.about).map(([id, about]): [string, string] => ["Agent", `${id}: ${about}`]),
    ...othersRow(setup),
    ["Config", setup.file ?? "none found, so this is the demo agent (see bough serve --help)"],
  ];
  terminal.print(`${terminal.paint("bold", "Bough")} ${packageVersion()} is serving.\n`);
  for (const [label, text] of rows) terminal.print(`  ${terminal.paint("dim", label.padEnd(7))}  ${visible(text)}`);
  terminal.print("");
  if (left > 0) terminal.print(`Resuming ${count(left, "interrupted run")}.\n`);
  if (!isLoopback(host)) warnOpen(terminal, host);
  terminal.print(terminal.paint("dim", "Press Ctrl-C to stop."));
}

/** Agents that can't be listed by id. */
function othersRow({ config: { resolveAgent, defaultAgent } }: Setup): (readonly [string, string])[] {
  return [
    ...(resolveAgent ? [["Agents", "by id, from resolveAgent"] as const] : []),
    ...(defaultAgent ? [["Default", `${modelName(defaultAgent.model)}, for every other id`] as const] : []),
  ];
}

function warnOpen(terminal: Terminal, host: string): void {
  const networks = isWildcard(host) ? "all networks of this machine" : visible(host);
  const sentence = `The server listens on ${networks}, without encryption. Put a proxy with TLS in front of it.`;
  terminal.note(`${terminal.paint("yellow", "warning")}: ${sentence}\n`);
}
