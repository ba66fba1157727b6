import { readFile } from "node:fs/promises";
import { createClient } from "../../client/index.ts";
import { openSessions } from "../../sessions/index.ts";
import { NamespacedStore } from "../../stores/namespaced/index.ts";
import { readUnbound } from "../../workflows/graph/unbound.ts";
import { type DrawnStep, drawSteps, executionSteps } from "../../workflows/index.ts";
import { defineCommand, misuse, storeArg } from "../command.ts";
import { serverArgs, serverAt } from "../server.ts";
import { chooseStore, withStore } from "../store.ts";

export const workflowDraw = defineCommand({
  args: {
    graph: {
      type: "positional",
      valueHint: "GRAPH",
      required: false,
      description: "a file with the JSON of a graph; with --url, the id of a workflow on the server",
    },
    session: { type: "string", valueHint: "ID", description: "the session of an execution, whose states are drawn" },
    branch: { type: "string", valueHint: "ID", description: "its branch (default: main)" },
    ...serverArgs,
    store: { ...storeArg.store, description: "without --url: the store of the execution (default: BOUGH_STORE)" },
  },
  examples: [
    "workflow draw triage.json",
    "workflow draw triage.json --session workflow-triage-case-7",
    "workflow draw --session workflow-review-case-7",
    "workflow draw triage --url http://127.0.0.1:4600",
  ],
  async run({ args, terminal }) {
    terminal.print((await drawing(args)).trimEnd());
    return 0;
  },
});

interface Words {
  readonly graph?: string | undefined;
  readonly session?: string | undefined;
  readonly branch?: string | undefined;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly store?: string | undefined;
}

async function drawing(args: Words): Promise<string> {
  const { graph, session: sessionId, branch: branchId = "main", store } = args;
  const server = serverAt(args, { store });
  if (server) {
    if (graph === undefined) throw misuse("With --url, name the workflow: bough workflow draw ID --url URL.");
    const execution = sessionId === undefined ? {} : { sessionId, branchId };
    return createClient({ ...server, agentId: graph }).drawGraph(graph, execution);
  }
  if (graph === undefined && sessionId === undefined) {
    throw misuse("Name a file with the JSON of a graph, or an execution by its --session.");
  }
  const steps = sessionId === undefined ? undefined : await stepsOf(store, { sessionId, branchId });
  if (graph === undefined) return drawSteps(steps!);
  return readUnbound(await readJson(graph)).toMermaid(steps && { execution: steps });
}

function stepsOf(
  store: string | undefined,
  scope: { readonly sessionId: string; readonly branchId: string },
): Promise<readonly DrawnStep[]> {
  return withStore(chooseStore(store), {}, async (opened) =>
    executionSteps(await openSessions(new NamespacedStore(opened, "")), scope),
  );
}

async function readJson(file: string): Promise<unknown> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw misuse(`The file ${file} can't be read (${error.code ?? error.message}).`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw misuse(`The file ${file} is not JSON.`);
  }
}
