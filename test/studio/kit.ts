// What the tests of Studio share: a server that serves it, and pages that may not do anything a page should not.
//   Every page is watched: an error, a report of the content policy or a request to another origin fails its test.

import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import type { AgentOptions } from "../../src/agent/index.ts";
import { type Client, createClient } from "../../src/client/index.ts";
import { defineTool } from "../../src/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/scripted/index.ts";
import type { ServerOptions } from "../../src/server/index.ts";
import { type Given, given, type OpenStore, quiet } from "../server/kit.ts";

const tools = {
  remove: defineTool({
    description: "Removes a file.",
    input: z.object({ path: z.string() }),
    permission: true,
    execute: ({ path }) => `${path} is gone`,
  }),
  look: defineTool({ input: z.object({ at: z.string() }), effect: "read", execute: ({ at }) => ({ at, found: 3 }) }),
  fail: defineTool({
    input: z.object({}),
    execute: () => {
      throw new Error("the disk is full");
    },
  }),
};

/** A tool that works until the test lets it go on. */
function holding() {
  const held: (() => void)[] = [];
  const hold = defineTool({
    input: z.object({}),
    execute: (_input, { signal }) =>
      new Promise<string>((resolve, reject) => {
        held.push(() => resolve("it is done"));
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  });
  const release = () => {
    for (const go of held.splice(0)) go();
  };
  return { hold, release };
}

function script(prompt: readonly { role: string; content: unknown }[]): ScriptedReply {
  const last = prompt.at(-1)!;
  const content = last.content as { text?: string; output?: { value?: unknown; type: string } }[];
  if (last.role === "tool") return `It says ${JSON.stringify(content[0]!.output!.value ?? content[0]!.output!.type)}.`;
  const text = content.map((part) => part.text ?? "").join("");
  if (text.startsWith("remove")) return { calls: [{ name: "remove", input: { path: "a.txt" } }] };
  if (text.startsWith("look")) return { calls: [{ name: "look", input: { at: "here" } }] };
  if (text.startsWith("fail")) return { calls: [{ name: "fail", input: {} }] };
  if (text.startsWith("hold")) return { text: "I work.", calls: [{ name: "hold", input: {} }] };
  if (text.startsWith("break")) return { error: new Error("the model is away") };
  if (text.startsWith("say ")) return text.slice(4);
  return `You said ${text}.`;
}

export interface Studio {
  readonly given: Given;
  readonly client: Client;
  /** Lets the tools that "hold" called go on. */
  release(): void;
  /** Opens a page at a place, with the token. */
  open(place?: string, options?: { width?: number; height?: number; dark?: boolean }): Promise<Page>;
}

interface StudioGiven extends Pick<ServerOptions, "limits" | "store"> {
  readonly open?: OpenStore;
  /** More agents, made from the one that all tests have. */
  readonly agents?: (helper: AgentOptions) => Record<string, AgentOptions>;
}

export async function startStudio(browser: Browser, options: StudioGiven = {}): Promise<Studio> {
  const model = scriptedModel(script, { chunks: 4 });
  const { hold, release } = holding();
  const { agents, ...rest } = options;
  const helper: AgentOptions = { model, tools: { ...tools, hold }, logger: quiet };
  const g = await given([], { agents: { helper, ...agents?.(helper) }, studio: true, ...rest });
  const { url } = g.serving;
  const token = g.server.token!;
  const client = createClient({ url, token, agentId: "helper" });
  const open: Studio["open"] = async (place = "#/s/s/main", { width = 1280, height = 800, dark = false } = {}) => {
    const page = await watched(browser, { origin: url, width, height, dark });
    await enter(page, { url, token, place });
    return page;
  };
  return { given: g, client, open, release };
}

/** Opens Studio with a token, at a place. */
export async function enter(page: Page, to: { url: string; token: string; place: string }): Promise<void> {
  await page.goto(`${to.url}/#token=${to.token}`);
  await page
    .getByRole("navigation", { name: "Sessions" })
    .or(page.getByRole("navigation", { name: "Panes" }))
    .first()
    .waitFor();
  await page.evaluate((place) => {
    location.hash = place;
  }, to.place);
  if (to.place.startsWith("#/s/")) await page.locator("main [data-status]:not([data-status=loading])").waitFor();
}

interface Watched {
  readonly origin: string;
  readonly width: number;
  readonly height: number;
  readonly dark: boolean;
}

/** A page whose misdeeds fail the test. */
export async function watched(browser: Browser, { origin, width, height, dark }: Watched): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A refusal that a test provokes is told by the browser, too.
    const isTold =
      message.type() !== "error" || /^Failed to load resource|^WebSocket connection to .* failed/.test(message.text());
    if (!isTold) faults.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const to = new URL(request.url());
    const isOwn = to.protocol === "blob:" || to.protocol === "data:" || to.host === new URL(origin).host;
    if (!isOwn) faults.push(`request to ${to.href}`);
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.effectiveDirective} ${event.blockedURI}`),
    );
  });
  onTestFinished(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  return page;
}

export async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
}

/** Waits for an answer in the conversation. */
export async function answered(page: Page, text: string): Promise<void> {
  await page.locator("article.assistant:not(.draft) .body", { hasText: text }).first().waitFor();
}
