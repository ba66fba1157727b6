// What Studio may cost: bytes of its first load, and processor time of the page's tasks with long conversations and many branches.
//   Tasks are measured by the time of their thread, so a busy machine changes little.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createAgent } from "../../src/agent/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { launch, missing } from "../react/browser.ts";
import { startStudio } from "./kit.ts";

const built = fileURLToPath(new URL("../../dist/studio/", import.meta.url));

test("the first load is small: 150 kB of script, 12 kB of styles, 125 kB of fonts, and 40 kB for each part that is loaded later", () => {
  const page = readFileSync(`${built}index.html`, "utf8");
  const files = readdirSync(`${built}assets`).filter((name) => !/\.(gz|br)$/.test(name));
  const packed = (name: string) => statSync(`${built}assets/${name}.gz`).size;
  const scripts = files.filter((name) => name.endsWith(".js"));
  const first = scripts.filter((name) => page.includes(name));
  expect(first.length).toBeGreaterThan(0);
  expect(sum(first.map(packed))).toBeLessThanOrEqual(150_000);
  for (const name of scripts) if (!first.includes(name)) expect(packed(name), name).toBeLessThanOrEqual(40_000);
  expect(sum(files.filter((name) => name.endsWith(".css")).map(packed))).toBeLessThanOrEqual(12_000);
  const fonts = files.filter((name) => name.endsWith(".woff2"));
  expect(sum(fonts.map((name) => statSync(`${built}assets/${name}`).size))).toBeLessThanOrEqual(125_000);
});

describe.skipIf(missing)("Studio's page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test("has no task of over 100 ms with 5,000 messages and 500 branches", async () => {
    const { page, longest } = await openLarge(browser, { messages: 5000, branches: 500 });
    const found: Record<string, number> = {};
    found.open = await longest(async () => {
      await page.evaluate(() => {
        location.hash = "#/s/large/main?pane=log";
      });
      await page.locator("article", { hasText: "5,000 said" }).waitFor();
      await page.getByText(/now · (\d+)\/\1/).waitFor();
    });
    found.scroll = await longest(async () => {
      await page.locator(".conversation").hover();
      for (let i = 0; i < 40; i++) await page.mouse.wheel(0, -700);
      await page.locator("article", { hasText: "5,000 said" }).waitFor({ state: "detached" });
    });
    found.scrub = await longest(async () => {
      await page.getByLabel("Position in the log").focus();
      for (let i = 0; i < 30; i++) await page.keyboard.press("Shift+ArrowLeft");
      await page.getByText(/as it was at/).waitFor();
    });
    found.branches = await longest(async () => {
      await page.evaluate(() => {
        location.hash = "#/s/large/b7?pane=branches";
      });
      await page.getByPlaceholder("Find in 500 branches").fill("b49");
      await page.getByRole("treeitem", { name: "b499" }).waitFor();
    });
    expect(over(found, 100)).toEqual({});
  });

  test("has no task of over 200 ms with 5,000 branches", async () => {
    const { page, longest } = await openLarge(browser, { messages: 10, branches: 5000 });
    const found: Record<string, number> = {};
    found.open = await longest(async () => {
      await page.evaluate(() => {
        location.hash = "#/s/large/main?pane=branches";
      });
      await page.getByPlaceholder("Find in 5000 branches").waitFor();
    });
    found.change = await longest(async () => {
      await page.evaluate(() => {
        location.hash = "#/s/large/b77?pane=branches";
      });
      await page.getByRole("heading", { name: "b77" }).waitFor();
      await page.getByPlaceholder("Find in 5000 branches").fill("b4999");
      await page.getByRole("treeitem", { name: "b4999" }).waitFor();
    });
    // The measure itself: a task that is busy is found.
    found.busy = await longest(() =>
      page.evaluate(() => {
        const end = performance.now() + 1500;
        while (performance.now() < end);
      }),
    );
    expect(Object.keys(over(found, 200))).toEqual(["busy"]);
  });
});

const sum = (all: readonly number[]) => all.reduce((total, each) => total + each, 0);

function over(found: Readonly<Record<string, number>>, limit: number): Record<string, number> {
  return Object.fromEntries(Object.entries(found).filter(([, ms]) => ms > limit));
}

/** A session with a long branch and many forks, and a page that shows another place yet. */
async function openLarge(browser: Browser, size: { messages: number; branches: number }) {
  const store = memoryStore();
  const agent = createAgent({ model: scriptedModel([]), store });
  await agent.ensureSession("large", { metadata: { title: "A long session" } });
  for (let i = 1; i < size.messages; i += 2) {
    await agent.appendTurn("large", [
      { role: "user", content: `Message ${i} of many` },
      {
        role: "assistant",
        content: `Answer **${i}** with a list:\n\n- one\n- two\n\n${(i + 1).toLocaleString("en")} said`,
      },
    ]);
  }
  const { messages } = await agent.loadBranch("large");
  for (let i = 1; i < size.branches; i++) {
    await agent.forkBranch(
      { sessionId: "large", branchId: "main" },
      { from: messages[i % messages.length]!.id, newBranchId: `b${i}` },
    );
  }
  const { open } = await startStudio(browser, { store });
  const page = await open("#/s/s/main");
  return { page, longest: (work: () => Promise<void>) => longestTask(browser, page, work) };
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/** The longest task of the page's main thread meanwhile, in ms of processor time. */
async function longestTask(browser: Browser, page: Page, work: () => Promise<void>): Promise<number> {
  await browser.startTracing(page, { categories: ["toplevel", "disabled-by-default-devtools.timeline"] });
  const trace = await work().then(
    () => browser.stopTracing(),
    async (error) => {
      await browser.stopTracing();
      throw error;
    },
  );
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] };
  const mains = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid}/${tid}`),
  );
  const tasks = traceEvents.filter(
    ({ name, pid, tid, tdur }) => /RunTask$/.test(name) && tdur !== undefined && mains.has(`${pid}/${tid}`),
  );
  expect(tasks.length).toBeGreaterThan(0);
  return Math.round(Math.max(...tasks.map(({ tdur }) => tdur!)) / 1000);
}
