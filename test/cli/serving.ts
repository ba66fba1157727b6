// A `bough serve` that runs, and configurations for it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Started, scratch, start } from "./kit.ts";

export interface ServeProcess {
  readonly started: Started;
  readonly url: string;
  /** Undefined when the server was given one. */
  readonly token: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }>;
  until(holds: () => Promise<boolean>): Promise<void>;
}

/** Keys of whoever runs the tests would bring a real model in. */
export const noKeys = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", NO_COLOR: "1" };

export async function serveIn(
  cwd = scratch(),
  { words = [], env = {} }: { words?: readonly string[]; env?: Record<string, string> } = {},
): Promise<ServeProcess> {
  const started = start(cwd, ["serve", "--port", "0", ...words], { ...noKeys, ...env });
  let said = "";
  started.child.stdout.on("data", (text: string) => {
    said += text;
  });
  await started.says("Press Ctrl-C to stop.");
  const [, url = "", token = ""] = /Open +(http:\/\/[^/\s]+)(?:\/#token=(\S+))?/.exec(said) ?? [];
  return {
    started,
    url,
    token,
    async ask(method, path, body) {
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    },
    async until(holds) {
      while (!(await holds())) await sleep(25);
    },
  };
}

/** An agent whose second tool never ends while STUCK is set; each execution leaves a line in ledger.txt. */
export function stuckConfig(cwd: string): string {
  const root = new URL("../../dist/", import.meta.url).href;
  const file = join(cwd, "stuck.config.mjs");
  writeFileSync(
    file,
    `
    import { appendFileSync } from "node:fs";
    import { setTimeout as wait } from "node:timers/promises";
    import { scriptedModel } from "${root}scripted/index.js";
    const input = { type: "object", properties: {} };
    const call = (name) => ({ name, input: {} });
    const done = (name) => (appendFileSync("ledger.txt", name + "\\n"), name + " is done");
    const tools = {
      quick: { inputSchema: { jsonSchema: input }, execute: () => done("quick") },
      slow: {
        inputSchema: { jsonSchema: input },
        execute: async () => {
          await wait(process.env.STUCK ? 600000 : Number(process.env.SLOW_MS ?? 0));
          return done("slow");
        },
      },
    };
    const model = scriptedModel((prompt) =>
      prompt.at(-1).role === "tool" ? "Both are done." : { calls: [call("quick"), call("slow")] },
    );
    export default { agents: { worker: { model, tools } } };
    `,
  );
  return file;
}
