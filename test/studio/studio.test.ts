// Studio in a real browser, on a server that listens.

import axe from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, missing } from "../react/browser.ts";
import { openSqlite } from "../server/kit.ts";
import { answered, say, startStudio, watched } from "./kit.ts";
import { payloads } from "./payloads.ts";

describe.skipIf(missing)("Studio", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test("the token leaves the address, stays in the tab, and is asked for where there is none", async () => {
    const { given, open } = await startStudio(browser);
    const page = await open("#/");
    expect(await page.evaluate(() => location.href)).not.toContain("token");
    await page.reload();
    await page.getByRole("navigation", { name: "Sessions" }).waitFor();
    const { url } = given.serving;
    const other = await watched(browser, { origin: url, width: 800, height: 600, dark: false });
    await other.goto(url);
    await other.getByLabel("Token").fill("a-wrong-token-1234567890");
    await other.getByRole("button", { name: "Open" }).click();
    await other.locator(".failure").waitFor();
    await other.getByLabel("Token").fill(given.server.token!);
    await other.getByRole("button", { name: "Open" }).click();
    await other.getByRole("navigation", { name: "Sessions" }).waitFor();
  });

  test("a message is sent, its answer appears, and another tab shows the same", async () => {
    const { open } = await startStudio(browser);
    const one = await open();
    const two = await open();
    await say(one, "hello");
    await answered(one, "You said hello.");
    await answered(two, "You said hello.");
    const text = (page: Page) => page.locator("article .inner").allInnerTexts();
    await expect.poll(() => text(two), { timeout: 20_000 }).toEqual(await text(one));
  });

  test("a question is answered from another tab, and after a reload", async () => {
    const { open } = await startStudio(browser);
    const one = await open();
    await say(one, "remove it");
    await one.getByRole("heading", { name: "Allow remove?" }).waitFor();
    const two = await open();
    await two.getByRole("button", { name: "Allow once" }).click();
    await answered(one, "a.txt is gone");
    await one.getByRole("heading", { name: "Allow remove?" }).waitFor({ state: "detached" });
    await say(one, "remove another");
    await one.getByRole("heading", { name: "Allow remove?" }).waitFor();
    await one.reload();
    await one.getByRole("button", { name: "Deny…" }).click();
    await one.getByLabel("Reason").fill("not now");
    await one.getByRole("button", { name: "Deny", exact: true }).click();
    await one.locator(".call.denied").waitFor();
  });

  test("the inbox has the questions of every session", async () => {
    const { open, client } = await startStudio(browser);
    await client.ensureSession("t", { metadata: { title: "Tidy up" } });
    await client.branch("t").submit("remove it");
    const page = await open("#/inbox");
    await page.getByText("Tidy up").first().waitFor();
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByText("Nobody waits for you.").waitFor();
  });

  test("other words and other answers are branches; the tree names them", async () => {
    const { open, client } = await startStudio(browser);
    const page = await open();
    await say(page, "first");
    await answered(page, "You said first.");
    await page.locator("article.user").hover();
    await page.getByRole("button", { name: /^Edit/ }).click();
    await page.getByRole("textbox", { name: "Other words" }).fill("second");
    await page.keyboard.press("Enter");
    await answered(page, "You said second.");
    await page.locator("article.assistant").hover();
    await page.getByRole("button", { name: /^Again/ }).click();
    await expect.poll(async () => (await client.listBranches("s")).length, { timeout: 20_000 }).toBe(3);
    await expect.poll(() => page.getByRole("treeitem").count(), { timeout: 20_000 }).toBe(3);
    await page.getByRole("treeitem", { name: "main" }).getByText("main").click();
    await answered(page, "You said first.");
  });

  test("versions stand at the message that differs, three levels deep, with the keys and the mouse", async () => {
    const { open, client } = await startStudio(browser);
    const main = client.branch("s");
    await main.run("one").result;
    await main.run("two").result;
    const [, , asked] = (await main.state()).messages;
    const a = await main.edit(asked!.id, "two, again");
    await a.run.result;
    const answer = (await a.branch.state()).messages.at(-1)!;
    const b = await a.branch.regenerate(answer.id);
    await b.run.result;
    await b.branch.run("three").result;
    const c = await b.branch.edit((await b.branch.state()).messages.at(-2)!.id, "another three");
    await c.run.result;
    const page = await open(`#/s/s/${c.branch.scope.branchId}`);
    const versions = page.locator("article:has(.versions)");
    const seen = () =>
      versions.evaluateAll((all) =>
        all.map((one) => `${one.querySelector(".body")!.textContent} ${one.querySelector(".versions")!.textContent}`),
      );
    const deepest = ["two, again‹2/2›", "You said two, again.‹2/2›", "another three‹2/2›"];
    const plain = async () => (await seen()).map((words) => words.replace(" ‹", "‹"));
    await expect.poll(plain, { timeout: 20_000 }).toEqual(deepest);
    await page.keyboard.press("h");
    await page.locator("article.marked.user", { hasText: "three" }).waitFor();
    await expect.poll(plain, { timeout: 20_000 }).toEqual([...deepest.slice(0, 2), "three‹1/2›"]);
    await page.keyboard.press("[");
    await page.locator("article.marked.assistant", { hasText: "two, again" }).waitFor();
    await page.keyboard.press("[");
    await page.locator("article.marked.user", { hasText: "two, again" }).waitFor();
    await page.keyboard.press("h");
    await expect.poll(plain, { timeout: 20_000 }).toEqual(["two‹1/2›"]);
    expect(page.url()).toContain("#/s/s/main");
    // What was last looked at below a version is what it leads to.
    await page.keyboard.press("l");
    await expect.poll(plain, { timeout: 20_000 }).toEqual([...deepest.slice(0, 2), "three‹1/2›"]);
    await page.getByRole("button", { name: "Next version" }).last().click();
    await page.waitForURL(new RegExp(c.branch.scope.branchId));
  });

  test("time goes back to any fact, by link, by key and by slider, and a fork starts there", async () => {
    const { open, client } = await startStudio(browser);
    await client.branch("s").run("one").result;
    await client.branch("s").run("two").result;
    const { seq } = await client.branch("s").state();
    const page = await open("#/s/s/main?at=5&pane=log");
    await page.getByText(`as it was at 5 of ${seq}`).waitFor();
    expect(await page.locator("article").count()).toBe(2);
    await page.getByLabel("Position in the log").focus();
    await page.keyboard.press("ArrowLeft");
    await page.getByText(`as it was at 4 of ${seq}`).waitFor();
    await page.getByRole("button", { name: "Fork from here" }).click();
    await expect.poll(async () => (await client.listBranches("s")).length, { timeout: 20_000 }).toBe(2);
    await page.getByText("as it was at").waitFor({ state: "detached" });
    await page.goto(`${page.url().split("#")[0]}#/s/s/main?at=5`);
    await page.getByRole("button", { name: "Back to now" }).click();
    await answered(page, "You said two.");
  });

  test("what the model saw is shown and verified, with the difference to the call before", async () => {
    const { open, client } = await startStudio(browser);
    await client.branch("s").run("one").result;
    await client.branch("s").run("two").result;
    const page = await open("#/s/s/main?pane=model");
    await page.getByText("verified by its hash").waitFor();
    await page.getByText("the provider’s cache holds").waitFor();
  });

  test("two branches are compared from the point where they part", async () => {
    const { open, client } = await startStudio(browser);
    const main = client.branch("s");
    await main.run("one").result;
    const { messages } = await main.state();
    const fork = await main.fork({ from: messages.at(-1)!.id, newBranchId: "other" });
    await main.run("left").result;
    await fork.run("right").result;
    const page = await open("#/s/s/main?with=other");
    await page.getByText("2 messages in common").waitFor();
    await page
      .locator(".column")
      .nth(0)
      .getByText("You said left.")
      .or(page.locator(".column").nth(0).getByText("You said"))
      .first()
      .waitFor();
    await page.locator(".column").nth(1).getByText("right", { exact: true }).first().waitFor();
  });

  test("tools show their state: done, failed", async () => {
    const { open, client } = await startStudio(browser);
    await client.branch("s").run("look").result;
    await client.branch("s").run("fail").result;
    const page = await open();
    await page.locator(".call.done").waitFor();
    await page.locator(".call.failed").waitFor();
    await page.locator(".call.failed summary").click();
    await page.locator(".call.failed").getByText("the disk is full").waitFor();
  });

  test("no text becomes a script, a request or a forbidden link, wherever it stands", async () => {
    const { open, client } = await startStudio(browser);
    await client.updateSession("s", { metadata: { title: payloads[0]! } });
    const branch = client.branch("s");
    await branch.update({ name: payloads[1]!, tags: [payloads[2]!] });
    await branch.run(`say ${payloads.join("\n\n")}`).result;
    const page = await open("#/s/s/main?pane=log");
    await answered(page, "alert");
    const found = await page.evaluate(() => ({
      elements: document.querySelectorAll(
        "main script, main iframe, main object, main embed, main img, main form[action], main svg:not(.icon, .bough)",
      ).length,
      links: [...document.querySelectorAll("main a")]
        .map((link) => (link as HTMLAnchorElement).protocol)
        .filter((protocol) => !/^(https?|mailto):$/.test(protocol)),
    }));
    expect(found).toEqual({ elements: 0, links: [] });
  });

  test("the keyboard alone reaches a fork, its comparison and an answer", async () => {
    const { open, client } = await startStudio(browser);
    const page = await open();
    await page.keyboard.press("i");
    await page.keyboard.type("hello");
    await page.keyboard.press("Enter");
    await answered(page, "You said hello.");
    await page.keyboard.press("Escape");
    await page.keyboard.press("f");
    await expect.poll(async () => (await client.listBranches("s")).length, { timeout: 20_000 }).toBe(2);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find or do" }).fill("inbox");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
  });

  test.each(["light", "dark"])("has no violation of WCAG 2.2 AA in %s", async (scheme) => {
    const { open, client } = await startStudio(browser, { open: openSqlite });
    await client.branch("s").run("look").result;
    await client.branch("s").submit("remove it");
    for (const place of [
      "#/s/s/main",
      "#/s/s/main?pane=log&at=4",
      "#/s/s/main?pane=info",
      "#/s/s/main?pane=model",
      "#/inbox",
      "#/agents",
      "#/settings",
    ]) {
      const page = await open(place, { dark: scheme === "dark" });
      await page.evaluate(axe.source);
      const violations = await page.evaluate(async () => {
        const { violations: found } = await (globalThis as unknown as { axe: typeof axe }).axe.run(document, {
          runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"],
        });
        return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
      });
      expect({ place, violations }).toEqual({ place, violations: [] });
      await page.context().close();
    }
  });

  test("fits a small screen without a horizontal scroll", async () => {
    const { open, client } = await startStudio(browser);
    await client.branch("s").run(`say ${"long ".repeat(40)}\n\n\`\`\`ts\n${"x".repeat(300)}\n\`\`\``).result;
    const page = await open("#/s/s/main", { width: 390, height: 780 });
    const { scroll, client: width } = await page.evaluate(() => ({
      scroll: document.documentElement.scrollWidth,
      client: innerWidth,
    }));
    expect(scroll).toBeLessThanOrEqual(width);
    await page.getByRole("button", { name: "Branches" }).click();
    await page.getByRole("tree").waitFor();
  });
});
