import { BoughError } from "../../base/errors.ts";
import { maskUrl } from "../../base/mask-url.ts";
import type { Conversation } from "../../chat/conversation.ts";
import { LocalConversation } from "../../chat/local.ts";
import { RemoteConversation } from "../../chat/remote.ts";
import { visible } from "../../chat/text.ts";
import { createClient, isRemoteError } from "../../client/index.ts";
import type { BranchRef } from "../../log/store.ts";
import { Chat } from "../chat/chat.ts";
import { openInput } from "../chat/input.ts";
import { JsonScreen } from "../chat/json-screen.ts";
import { TextScreen } from "../chat/screen.ts";
import { type Call, defineCommand, jsonArg, misuse, storeArg } from "../command.ts";
import { configArg, findAgent, prepareSetup, showStore } from "../config/setup.ts";
import { interruptedCode } from "../interrupt.ts";
import { showUrl } from "../place.ts";
import { serverArgs, serverAt } from "../server.ts";
import { openOwnStore } from "../store.ts";

const chatArgs = {
  ...serverArgs,
  ...configArg,
  store: { ...storeArg.store, description: "without --url: the store (default: as for bough serve)" },
  agent: { type: "string", valueHint: "ID", description: "the agent; needed if there are several" },
  session: { type: "string", valueHint: "ID", description: "the session, created if necessary (default: a new one)" },
  branch: { type: "string", valueHint: "ID", description: "the branch; needed if the session has several" },
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
    if (args.branch !== undefined && args.session === undefined) throw misuse("--branch requires --session.");
    const isInteractive = terminal.isInteractive && process.stdout.isTTY === true && !args.json;
    const { conversation, close } = await openConversation(call, isInteractive);
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
      await close();
    }
    if (isInteractive) sayGoodbye(call, talk.place);
    if (signal.aborted) return interruptedCode;
    return talk.hasFailed && !isInteractive ? 1 : 0;
  },
});

/** About half a minute: a person sees that the connection is lost and can leave; a script has to end. */
const scriptAttempts = 6;

interface Opened {
  readonly conversation: Conversation;
  readonly close: () => Promise<void>;
}

async function openConversation({ args, signal }: ChatCall, isInteractive: boolean): Promise<Opened> {
  const attempts = isInteractive ? Number.POSITIVE_INFINITY : scriptAttempts;
  const { store, config } = args;
  const server = serverAt(args, { store, config });
  if (server) {
    const conversation = await openRemote(server, args.agent, attempts);
    return { conversation, close: () => conversation.close() };
  }
  const setup = await prepareSetup(args, signal);
  const ids = Object.keys(setup.agents);
  const agentId = args.agent ?? chooseAgent(ids);
  const found = await findAgent(setup, agentId);
  if (!found) throw noAgent(agentId, ids);
  const opened = await openOwnStore(setup.store);
  const about = [`${agentId}: ${found.about}`, `Stored in ${showStore(setup.store)}.`];
  const conversation = new LocalConversation({ agentId, options: found.options, store: opened, about });
  const close = async () => {
    await conversation.close();
    await found.close();
  };
  return { conversation, close };
}

async function openRemote(
  server: { readonly url: string; readonly token?: string },
  agent: string | undefined,
  attempts: number,
): Promise<Conversation> {
  const client = createClient(server);
  const ids = (await client.listAgents()).map(({ id }) => id);
  const agentId = agent ?? chooseAgent(ids);
  // A server may have agents that it can't list.
  if (!ids.includes(agentId)) await client.getAgent(agentId).catch(explainAgent(agentId, ids));
  return new RemoteConversation({ client, agentId, url: server.url, attempts });
}

function chooseAgent(ids: readonly string[]): string {
  if (ids.length === 1) return ids[0]!;
  throw misuse(`Choose an agent with --agent ID.${listIds(ids)}`);
}

function noAgent(agentId: string, ids: readonly string[]): BoughError {
  return misuse(`There is no agent "${visible(agentId)}".${listIds(ids)}`);
}

function explainAgent(agentId: string, ids: readonly string[]) {
  return (error: unknown): never => {
    throw isRemoteError(error) && error.code === "agent_not_found" ? noAgent(agentId, ids) : error;
  };
}

function listIds(ids: readonly string[]): string {
  return ids.length === 0 ? "" : ` Available: ${ids.map(visible).join(", ")}.`;
}

async function placeOf({ args }: ChatCall, conversation: Conversation): Promise<BranchRef | undefined> {
  const { session, branch } = args;
  if (session === undefined) return undefined;
  const sessionId = await conversation.openSession(session);
  const ids = (await conversation.branches(sessionId)).map(({ id }) => id);
  if (branch !== undefined && ids.includes(branch)) return { sessionId, branchId: branch };
  if (branch === undefined && ids.length === 1) return { sessionId, branchId: ids[0]! };
  const code = branch === undefined ? "branch_ambiguous" : "branch_not_found";
  throw new BoughError(code, `Choose a branch with --branch ID. Available: ${ids.map(visible).join(", ")}.`, {
    data: { ids },
  });
}

function greet({ terminal }: ChatCall, { about }: Conversation): void {
  for (const line of about) terminal.print(terminal.paint("dim", visible(line)));
  terminal.print(terminal.paint("dim", "/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves.\n"));
}

/** A shell command that reopens this chat, without tokens or passwords. */
function sayGoodbye({ args, terminal }: ChatCall, place: BranchRef | undefined): void {
  if (!place) return;
  const { url, config, store, agent } = args;
  const shownStore = store === undefined ? undefined : showUrl(store);
  const where = url === undefined ? { config, store: shownStore } : { url: maskUrl(url.replace(/#.*/, "")) };
  const branch = place.branchId === "main" ? undefined : place.branchId;
  const words = Object.entries({ ...where, agent, session: place.sessionId, branch });
  const said = words.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${quote(value)}`]));
  terminal.print(terminal.paint("dim", `To continue: bough chat ${said.join(" ")}`));
}

function quote(word: string): string {
  return /^[\w.:/…-]+$/.test(word) ? word : `'${visible(word).replaceAll("'", "'\\''")}'`;
}
