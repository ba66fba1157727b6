// useBranch in a browser: the page of examples/react-chat, as built, on a running server.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { servePage } from "../../examples/react-chat/page.mjs";
import { createClient } from "../../src/client/index.ts";
import { defineTool } from "../../src/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/scripted/index.ts";
import { given } from "../server/kit.ts";
import { launch, missing } from "./browser.ts";

/** Lets a model say so many parts and then waits for more leave. */
function pace() {
  let left = Number.POSITIVE_INFINITY;
  const waiting: (() => void)[] = [];
  return {
    allow(parts: number) {
      left = parts;
      for (const go of waiting.splice(0)) go();
    },
    sleep: (_ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        const go = () => {
          if (left <= 0 && !signal?.aborted) return void waiting.push(go);
          left--;
          resolve();
        };
        signal?.addEventListener("abort", go, { once: true });
        go();
      }),
  };
}

function script(prompt: readonly { role: string; content: unknown }[]): ScriptedReply {
  const last = prompt.at(-1)!;
  const content = last.content as { text?: string; output?: { value?: unknown; type: string } }[];
  if (last.role === "tool") return `It says ${JSON.stringify(content[0]!.output!.value ?? content[0]!.output!.type)}.`;
  const text = content.map((part) => part.text).join("");
  if (text.startsWith("remove")) return { calls: [{ name: "remove", input: { path: "a.txt" } }] };
  if (text.startsWith("where")) return { calls: [{ name: "page_info", input: {} }] };
  return `one two three four, ${text}`;
}

const tools = {
  remove: defineTool({
    input: z.object({ path: z.string() }),
    permission: true,
    execute: ({ path }) => `${path} gone`,
  }),
  page_info: defineTool({ input: z.object({}) }),
};

describe.skipIf(missing)("a page on a branch", () => {
  let browser: Browser;
  let page: Awaited<ReturnType<typeof servePage>>;
  beforeAll(async () => {
    [browser, page] = await Promise.all([launch(), servePage("development")]);
  });
  afterAll(async () => {
    page?.close();
    await browser?.close();
  });

  async function start(transport: "sse" | "websocket" = "sse") {
    const speed = pace();
    const model = scriptedModel(script, { chunks: 4, sleep: speed.sleep });
    const g = await given([], { agent: { model, tools }, origins: [page.origin] });
    const { url } = g.serving;
    const token = g.server.token!;
    const place = new URLSearchParams({ url, token, transport, session: "s", branch: "main" });
    const open = async (): Promise<Page> => {
      const context = await browser.newContext();
      context.setDefaultTimeout(10_000);
      const opened = await context.newPage();
      const faults: string[] = [];
      opened.on("pageerror", (error) => faults.push(error.message));
      opened.on("console", (message) => {
        // A refusal that a test provokes is told by the browser, too.
        const isTold = message.type() !== "error" || message.text().startsWith("Failed to load resource");
        if (!isTold) faults.push(message.text());
      });
      onTestFinished(async () => {
        await context.close();
        expect(faults).toEqual([]);
      });
      await opened.goto(`${page.origin}/#${place}`);
      await opened.getByText("connected", { exact: true }).waitFor();
      return opened;
    };
    const branch = createClient({ url, token }).branch({ agentId: "helper", sessionId: "s" });
    return { open, branch, allow: speed.allow };
  }

  async function say(on: Page, text: string): Promise<void> {
    await on.getByLabel("Message").fill(text);
    await on.keyboard.press("Enter");
  }

  const status = (on: Page, what: string) => on.locator(`[data-testid=status]:text-is("${what}")`).waitFor();
  const streamed = (on: Page, text: string) => on.locator(`[data-testid=streaming] p:text-is("${text}")`).waitFor();
  /** The branch is idle before a turn begins, too: only the answer shows that it is over. */
  const answered = (on: Page, text: string) => on.locator(`[data-testid=assistant] p:text-is("${text}")`).waitFor();
  const texts = (on: Page, role: string) => on.getByTestId(role).locator("p").allTextContents();

  test.each(["sse", "websocket"] as const)("%s: an answer is seen as it is said, and stays", async (transport) => {
    const { open, allow, branch } = await start(transport);
    const chat = await open();
    allow(4);
    await say(chat, "hello");
    await streamed(chat, "one two three");
    await status(chat, "running");
    expect(await texts(chat, "user")).toEqual(["hello"]);
    allow(Number.POSITIVE_INFINITY);
    await status(chat, "idle");
    expect(await texts(chat, "assistant")).toEqual(["one two three four, hello"]);
    expect(await chat.getByTestId("streaming").count()).toBe(0);
    expect((await branch.state()).messages).toHaveLength(2);
  });

  test.each(["sse", "websocket"] as const)(
    "%s: a reload keeps what was said, also in the middle",
    async (transport) => {
      const { open, allow } = await start(transport);
      const chat = await open();
      await say(chat, "hello");
      await answered(chat, "one two three four, hello");
      await status(chat, "idle");
      allow(4);
      await say(chat, "again");
      await streamed(chat, "one two three");
      await chat.reload();
      await streamed(chat, "one two three");
      expect(await texts(chat, "assistant")).toEqual(["one two three four, hello"]);
      allow(Number.POSITIVE_INFINITY);
      await status(chat, "idle");
      expect(await texts(chat, "assistant")).toEqual(["one two three four, hello", "one two three four, again"]);
    },
  );

  test("permission is asked for and given, or not, in the page", async () => {
    const { open, branch } = await start();
    const chat = await open();
    await say(chat, "remove it");
    await status(chat, "asking");
    expect(await chat.getByRole("alert").innerText()).toContain("a.txt");
    await chat.getByRole("button", { name: "Allow" }).click();
    await status(chat, "idle");
    expect(await texts(chat, "tool")).toEqual(["→ a.txt gone"]);
    expect(await chat.getByRole("alert").count()).toBe(0);
    await say(chat, "remove it again");
    await status(chat, "asking");
    await chat.getByRole("button", { name: "Deny" }).click();
    await status(chat, "idle");
    expect((await texts(chat, "tool")).at(-1)).toBe("→ The user said no.");
    const answers = (await branch.events()).flatMap((event) =>
      event.type === "interaction.answered" ? [event.answer] : [],
    );
    expect(answers).toMatchObject([{ approved: true }, { approved: false, reason: "The user said no." }]);
  });

  test("a question is there after a reload, and gone once another page has answered", async () => {
    const { open } = await start();
    const [one, two] = [await open(), await open()];
    await say(one, "remove it");
    await one.getByRole("alert").waitFor();
    await one.reload();
    await one.getByRole("alert").waitFor();
    await two.getByRole("button", { name: "Always" }).click();
    await Promise.all([status(one, "idle"), status(two, "idle")]);
    expect(await one.getByRole("alert").count()).toBe(0);
    await say(one, "remove it again");
    await one.locator("[data-testid=tool]").nth(1).waitFor();
    await status(one, "idle");
    expect(await texts(one, "tool")).toEqual(["→ a.txt gone", "→ a.txt gone"]);
  });

  test("a tool of the page is run in the page, once, though two are open", async () => {
    const { open, branch } = await start();
    const pages = [await open(), await open()];
    const zone = await pages[0]!.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone);
    await say(pages[0]!, "where am I?");
    for (const each of pages) {
      await each.locator("[data-testid=assistant]").nth(1).waitFor();
      await status(each, "idle");
      expect((await texts(each, "assistant")).at(-1)).toContain(zone);
      expect(await each.locator(".failure").count()).toBe(0);
    }
    expect((await branch.events()).filter(({ type }) => type === "interaction.answered")).toHaveLength(1);
  });

  test("a fork goes its own way, and siblings are a step apart", async () => {
    const { open } = await start();
    const chat = await open();
    await say(chat, "hello");
    await answered(chat, "one two three four, hello");
    await status(chat, "idle");
    await say(chat, "second");
    await chat.getByText("one two three four, second").waitFor();
    for (const name of ["fork 1", "fork 2"]) {
      const first = chat.getByTestId("assistant").first();
      await first.hover();
      await first.getByText("Fork from here").click();
      await chat.locator(`[data-testid=branch]:text-is("${name}")`).waitFor();
      await say(chat, name);
      await chat.getByText(`one two three four, ${name}`).waitFor();
      if (name === "fork 1") await chat.getByLabel("Previous sibling").click();
      await status(chat, "idle");
    }
    expect(await texts(chat, "user")).toEqual(["hello", "fork 2"]);
    await chat.getByTestId("siblings").getByText("3 / 3").waitFor();
    await chat.getByLabel("Previous sibling").click();
    await chat.getByText("one two three four, fork 1").waitFor();
    expect(await texts(chat, "user")).toEqual(["hello", "fork 1"]);
    await chat.getByLabel("Previous sibling").click();
    await chat.getByText("one two three four, second").waitFor();
    expect(await texts(chat, "user")).toEqual(["hello", "second"]);
    await chat.getByRole("button", { name: "⑂ fork 2" }).click();
    await chat.getByText("one two three four, fork 2").waitFor();
  });

  test("two pages on one branch show the same, while it is said and after", async () => {
    const { open, allow } = await start();
    const pages = [await open(), await open()];
    allow(4);
    await say(pages[0]!, "hello");
    for (const each of pages) await streamed(each, "one two three");
    allow(Number.POSITIVE_INFINITY);
    for (const each of pages) await status(each, "idle");
    const [one, two] = await Promise.all(pages.map((each) => each.getByTestId("messages").innerText()));
    expect(one).toContain("one two three four, hello");
    expect(two).toBe(one);
  });

  test("stop ends the run that is shown, and what was said stays", async () => {
    const { open, allow, branch } = await start();
    const chat = await open();
    allow(4);
    await say(chat, "hello");
    await streamed(chat, "one two three");
    const asking = chat.waitForRequest(/\/interrupt$/);
    await chat.getByRole("button", { name: "Stop" }).click();
    const { expectedRunId } = (await asking).postDataJSON();
    await status(chat, "idle");
    expect(await texts(chat, "assistant")).toEqual(["one two three "]);
    await chat.getByText("interrupted").waitFor();
    const [run] = await branch.runs();
    expect(run).toMatchObject({ status: "interrupted", runId: expectedRunId });
  });

  test("what the server refuses is told, and what was typed is kept", async () => {
    const { open, allow, branch } = await start();
    const chat = await open();
    await chat.getByLabel("Message").fill("me too");
    allow(2);
    await branch.submit("first");
    await status(chat, "running");
    await chat.keyboard.press("Enter");
    await chat.locator(".failure").waitFor();
    expect(await chat.locator(".failure").innerText()).toMatch(/run/i);
    expect(await chat.getByLabel("Message").inputValue()).toBe("me too");
    allow(Number.POSITIVE_INFINITY);
    await status(chat, "idle");
    await chat.keyboard.press("Enter");
    await chat.getByText("one two three four, me too").waitFor();
    expect(await chat.locator(".failure").count()).toBe(0);
  });
});
