// What people do in Studio, in a real browser: they say and stop, send files, meet failures, and lose their server.

import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { launch, missing } from "../react/browser.ts";
import { freshDirectory, openSqlite } from "../server/kit.ts";
import { Node, token } from "../server/process.ts";
import { answered, enter, say, startStudio, watched } from "./kit.ts";

/** One red pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

/** Gives files to the page as a paste or a drop does. */
async function give(
  page: Page,
  how: "paste" | "drop",
  file: { name: string; type: string; base64?: string; size?: number },
) {
  await page.getByLabel("Message", { exact: true }).evaluate(
    (box, { how: kind, name, type, base64 = "", size = 0 }) => {
      const bytes = base64 ? Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)) : new Uint8Array(size);
      const data = new DataTransfer();
      data.items.add(new File([bytes], name, { type }));
      const options = { bubbles: true, cancelable: true };
      box.dispatchEvent(
        kind === "paste"
          ? new ClipboardEvent("paste", { ...options, clipboardData: data })
          : new DragEvent("drop", { ...options, dataTransfer: data }),
      );
    },
    { how, ...file },
  );
}

describe.skipIf(missing)("In Studio", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test("a message queues, steers or interrupts; Escape and Stop end a turn, which can be tried again", async () => {
    const { open, release } = await startStudio(browser);
    const page = await open();
    await say(page, "hold on");
    await page.getByText("working", { exact: true }).waitFor();
    await page.locator(".call.running").waitFor();
    await say(page, "afterwards");
    await page.getByLabel("Messages that wait").getByText("next").waitFor();
    await page.getByLabel("What a message does now").selectOption("steer");
    await say(page, "look here, too");
    await page.getByLabel("Messages that wait").getByText("joins this turn").waitFor();
    release();
    await answered(page, "You said afterwards.");
    await page.getByText("while it worked").waitFor();
    await say(page, "hold again");
    await page.locator(".call.running").waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page
      .getByText(/^Stopped/)
      .first()
      .waitFor();
    await say(page, "hold once more");
    await page.locator(".call.running").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator(".note.interrupted").count(), { timeout: 20_000 }).toBe(2);
    await page.getByRole("button", { name: "Try again on a new branch" }).last().click();
    await page.locator(".call.running").waitFor();
    await page.getByLabel("What a message does now").selectOption("interrupt");
    await say(page, "no, this");
    await answered(page, "You said no, this.");
    release();
  });

  test("a turn that failed says why, and is tried again on a new branch", async () => {
    const { open, client } = await startStudio(browser);
    const page = await open();
    await say(page, "break it");
    await page.locator(".note.failed", { hasText: "the model is away" }).waitFor();
    await page.getByRole("button", { name: "Try again on a new branch" }).click();
    await expect.poll(async () => (await client.listBranches("s")).length, { timeout: 20_000 }).toBe(2);
    await page.getByRole("treeitem").nth(1).waitFor();
  });

  test("files are pasted and dropped, an image is shown, and one that is too large is refused in words", async () => {
    const { open, client } = await startStudio(browser, { open: openSqlite, limits: { uploadBytes: 1_000_000 } });
    const page = await open();
    await give(page, "paste", { name: "red.png", type: "image/png", base64: pixel });
    await give(page, "drop", { name: "notes.txt", type: "text/plain", base64: btoa("hello") });
    const attached = page.getByLabel("Files of the next message");
    await expect.poll(() => attached.getByText(/ B$/).count(), { timeout: 20_000 }).toBe(2);
    await give(page, "drop", { name: "huge.bin", type: "application/octet-stream", size: 2_000_000 });
    await attached.locator(".bad", { hasText: "huge.bin" }).waitFor();
    expect(await attached.locator(".bad").innerText()).toMatch(/larger|large|bytes/i);
    await page.getByRole("button", { name: "Remove huge.bin" }).click();
    await say(page, "what are these?");
    await page.locator('article.user img[alt="red.png"]').waitFor();
    await expect
      .poll(() => page.locator("article.user img").evaluate((img) => (img as HTMLImageElement).naturalWidth))
      .toBe(1);
    await page.locator("article.user", { hasText: "notes.txt" }).waitFor();
    const { messages } = await client.branch("s").state();
    expect(messages[0]!.content).toHaveLength(3);
  });

  test("the tree is live, names and tags branches, and says why one can’t be deleted", async () => {
    const { open, client } = await startStudio(browser);
    const main = client.branch("s");
    await main.run("one").result;
    const page = await open();
    const fork = await main.fork({ newBranchId: "other" });
    await page.getByRole("treeitem").nth(1).waitFor();
    await fork.fork({ newBranchId: "third" });
    await page.getByRole("treeitem").nth(2).waitFor();
    const act = async (branch: string, item: string) => {
      await page.getByRole("button", { name: `More about ${branch}` }).click();
      await page.getByRole("menuitem", { name: item }).click();
    };
    await act("third", "Name and tags…");
    await page.getByLabel("Name", { exact: true }).fill("a try");
    await page.getByLabel("Tags, with commas between").fill("idea, later");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".tree .tag", { hasText: "later" }).waitFor();
    await act("main", "Delete…");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("it goes with the session").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await act("other", "Delete…");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("It has 1 fork. Delete it first.").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await act("a try", "Delete…");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await expect.poll(() => page.getByRole("treeitem").count(), { timeout: 20_000 }).toBe(2);
    await page.getByRole("treeitem", { name: "other" }).getByText("other").click();
    await page.getByRole("heading", { name: "other" }).waitFor();
    await page.evaluate(() => {
      location.hash = "#/inbox";
    });
    await fork.delete();
    await page.getByRole("navigation", { name: "Sessions" }).getByText("one").click();
    await page.getByRole("heading", { name: "main" }).waitFor();
    await answered(page, "You said one.");
  });

  test("a compaction stands on the spine and is taken back; links, first words and agents find their place", async () => {
    const { open, client } = await startStudio(browser, { agents: (helper) => ({ second: helper }) });
    const main = client.branch("s");
    for (const text of ["first words of all", "two", "three"]) await main.run(text).result;
    await client.branch({ agentId: "second", sessionId: "s", branchId: "main" }).run("four").result;
    const { messages } = await main.state();
    await main.compact({ before: messages[4]!.id });
    const page = await open(`#/s/s/main?m=${messages[2]!.id}`);
    await page.locator("article.marked", { hasText: "two" }).waitFor();
    await page.getByRole("navigation", { name: "Sessions" }).getByText("first words of all").waitFor();
    expect(await page.getByLabel("Agent of the next turn").inputValue()).toBe("second");
    await page.getByText(/Models see a summary of \d+ messages above/).waitFor();
    await page.getByRole("button", { name: "Take it back" }).click();
    await page.locator(".note.compaction").waitFor({ state: "detached" });
    await page.getByLabel("Message", { exact: true }).press("ArrowUp");
    expect(await page.getByRole("textbox", { name: "Other words" }).inputValue()).toBe("four");
  });

  test("a server that is killed in mid-text and started again goes on under open pages", async () => {
    const url = `sqlite:${join(freshDirectory(), "bough.db")}`;
    const first = await Node.start("one", { url }, { studio: true, delayMs: 150 });
    const client = createClient({ url: first.url, token, agentId: "helper" });
    await client.createSession("s");
    const pages: Page[] = [];
    for (let i = 0; i < 2; i++) {
      const page = await watched(browser, { origin: first.url, width: 1280, height: 800, dark: false });
      await enter(page, { url: first.url, token, place: "#/s/s/main" });
      pages.push(page);
    }
    const [one, two] = pages as [Page, Page];
    await say(one, "count");
    await two.locator("article.draft .body", { hasText: "one" }).waitFor();
    await first.end("SIGKILL");
    await Node.start("one", { url }, { studio: true, delayMs: 10, port: first.port });
    for (const page of pages) await answered(page, "eleven twelve");
    const text = (page: Page) => page.locator("article .inner").allInnerTexts();
    await expect.poll(() => text(two), { timeout: 20_000 }).toEqual(await text(one));
    await say(two, "and again");
    for (const page of pages) await answered(page, "and again: one two");
  });
});
