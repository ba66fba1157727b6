import { BoughError } from "../../base/errors.ts";
import { maskUrl } from "../../base/mask-url.ts";
import { createClient } from "../../client/index.ts";
import type { BranchRef } from "../../log/store.ts";
import { Chat } from "../chat/chat.ts";
import type { Conversation } from "../chat/conversation.ts";
import { openInput } from "../chat/input.ts";
import { JsonScreen } from "../chat/json-screen.ts";
import { LocalConversation } from "../chat/local.ts";
import { RemoteConversation } from "../chat/remote.ts";
import { TextScreen } from "../chat/screen.ts";
import { type Call, defineCommand, jsonArg, misuse, storeArg } from "../command.ts";
import { configArg, prepareSetup, showStore } from "../config/setup.ts";
import { interruptedCode } from "../interrupt.ts";
import { showUrl } from "../place.ts";
import { openOwnStore } from "../store.ts";
import { visible } from "../terminal.ts";
import { findToken } from "../token-file.ts";

const chatArgs = {
  url: { type: "string", valueHint: "URL", description: "a server, by the address that bough serve prints" },
  token: {
    type: "string",
    valueHint: "TOKEN",
    description: "its token (default: BOUGH_TOKEN, else the file of a bough serve in this directory)",
  },
  ...configArg,
  store: { ...storeArg.store, description: "without a server: the store (default as bough serve)" },
  agent: { type: "string", valueHint: "ID", description: "whom to talk to, if there are several" },
  session: { type: "string", valueHint: "ID", description: "the session, made if need be (default: a new one)" },
  branch: { type: "string", valueHint: "ID", description: "the branch, if the session has several" },
  ...jsonArg,
} as const;

type ChatCall = Call<typeof chatArgs>;

export const chat = defineCommand({
  args: chatArgs,
  examples: [
    "chat",
    "chat --url http://127.0.0.1:4600",
    "chat --session user-123 --branch formal",
    "chat --json < lines.txt",
  ],
  async run(call) {
    const { args, terminal, signal } = call;
    if (args.branch !== undefined && args.session === undefined) throw misuse("--branch goes with --session.");
    const isInteractive = terminal.isInteractive && process.stdout.isTTY === true && !args.json;
    const conversation = await openConversation(call, isInteractive);
    const screen = args.json
      ? new JsonScreen(terminal)
      : new TextScreen({ terminal, agentId: conversation.agentId, isInteractive });
    const input = openInput(isInteractive);
    const talk = new Chat({ conversation, input, screen, terminal, signal });
    try {
      if (isInteractive) greet(call, conversation);
      await talk.goTo(await placeOf(call, conversation), { isAsked: false });
      await talk.talk();
    } finally {
      input.close();
      await conversation.close();
    }
    if (isInteractive) sayGoodbye(call, talk.place);
    if (signal.aborted) return interruptedCode;
    return talk.hasFailed && !isInteractive ? 1 : 0;
  },
});

/** Half a minute or so: a person sees that it is lost and can leave, a script has to come to an end. */
const scriptAttempts = 6;

async function openConversation({ args, signal }: ChatCall, isInteractive: boolean): Promise<Conversation> {
  const attempts = isInteractive ? Number.POSITIVE_INFINITY : scriptAttempts;
  if (args.url !== undefined) return openRemote(args.url, args, attempts);
  if (args.token !== undefined) throw misuse("--token goes with --url.");
  const setup = await prepareSetup(args, signal);
  const agentId = chooseAgent(args.agent, Object.keys(setup.agents));
  const store = await openOwnStore(setup.store);
  const about = [`${agentId}: ${setup.about[agentId]}`, `Kept in ${showStore(setup.store)}.`];
  return new LocalConversation({ agentId, options: setup.agents[agentId]!, store, about });
}

async function openRemote(given: string, args: ChatCall["args"], attempts: number): Promise<Conversation> {
  if (args.store !== undefined || args.config !== undefined) {
    throw misuse("A server has its own store and configuration: --url goes without --store and --config.");
  }
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  if (parsed?.protocol !== "http:" && parsed?.protocol !== "https:")
    throw misuse("--url is an http:// or https:// URL.");
  const inUrl = new URLSearchParams(parsed.hash.slice(1)).get("token");
  const token = args.token ?? inUrl ?? (process.env.BOUGH_TOKEN || undefined) ?? findToken(parsed);
  parsed.hash = "";
  const url = parsed.href.replace(/\/+$/, "");
  const client = createClient({ url, ...(token && { token }) });
  const agents = await client.listAgents();
  const agentId = chooseAgent(
    args.agent,
    agents.map(({ id }) => id),
  );
  return new RemoteConversation({ client, agentId, url, attempts });
}

function chooseAgent(named: string | undefined, ids: readonly string[]): string {
  if (named === undefined && ids.length === 1) return ids[0]!;
  if (named !== undefined && ids.includes(named)) return named;
  const known = `There are ${ids.map(visible).join(", ")}.`;
  throw misuse(
    named === undefined ? `Which agent? Say --agent ID. ${known}` : `There is no agent "${visible(named)}". ${known}`,
  );
}

async function placeOf({ args }: ChatCall, conversation: Conversation): Promise<BranchRef | undefined> {
  const { session, branch } = args;
  if (session === undefined) return undefined;
  const sessionId = await conversation.openSession(session);
  const ids = (await conversation.branches(sessionId)).map(({ id }) => id);
  if (branch !== undefined && ids.includes(branch)) return { sessionId, branchId: branch };
  if (branch === undefined && ids.length === 1) return { sessionId, branchId: ids[0]! };
  const code = branch === undefined ? "branch_ambiguous" : "branch_not_found";
  throw new BoughError(code, `Which branch? Say --branch ID. There are ${ids.map(visible).join(", ")}.`, {
    data: { ids },
  });
}

function greet({ terminal }: ChatCall, { about }: Conversation): void {
  for (const line of about) terminal.print(terminal.paint("dim", visible(line)));
  terminal.print(terminal.paint("dim", "/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves.\n"));
}

/** How to come back, in the words that a shell takes; neither a token nor a password is shown. */
function sayGoodbye({ args, terminal }: ChatCall, place: BranchRef | undefined): void {
  if (!place) return;
  const { url, config, store, agent } = args;
  const shownStore = store === undefined ? undefined : showUrl(store);
  const where = url === undefined ? { config, store: shownStore } : { url: maskUrl(url.replace(/#.*/, "")) };
  const branch = place.branchId === "main" ? undefined : place.branchId;
  const words = Object.entries({ ...where, agent, session: place.sessionId, branch });
  const said = words.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quote(value)}`]));
  terminal.print(terminal.paint("dim", `To go on: bough chat ${said.join(" ")}`));
}

function quote(word: string): string {
  return /^[\w.:/…-]+$/.test(word) ? word : `'${visible(word).replaceAll("'", "'\\''")}'`;
}
