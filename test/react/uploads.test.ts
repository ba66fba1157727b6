// Uploads of useBranch in a browser: progress, the reference that a message uses, and an end that leaves nothing.

import { expect, onTestFinished, test } from "vitest";
import { scriptedModel } from "../../src/scripted/index.ts";
import { given } from "../server/kit.ts";
import { launch, missing } from "./browser.ts";
import { servePage } from "./page.ts";

test.skipIf(missing)("a page stores files, sees how far they are, sends them, and can end an upload", async () => {
  const [origin, browser] = await Promise.all([servePage("./uploads.mjs"), launch()]);
  onTestFinished(() => browser.close());
  const g = await given([], { agent: { model: scriptedModel(["Seen."]) }, origins: [origin] });
  const page = await browser.newPage();
  page.setDefaultTimeout(30_000);
  const faults: string[] = [];
  page.on("pageerror", ({ message }) => faults.push(message));
  await page.goto(`${origin}/#${new URLSearchParams({ url: g.serving.url, token: g.server.token! })}`);
  const shows = (id: string, text: string) => page.locator(`#${id}:text-is("${text}")`).waitFor();
  await shows("status", "idle");

  const large = { name: "oaks.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(3_000_000, 7) };
  await page.setInputFiles("input", large);
  await shows("stored", "bough-content://sha256/…");
  await shows("pending", "none");
  const progress = (await page.evaluate("window.progress")) as [string, number, number][];
  const sent = progress.map(([, bytes]) => bytes);
  expect(progress[0]).toEqual(["oaks.bin", 0, 3_000_000]);
  expect(Math.max(...sent)).toBe(3_000_000);
  expect(sent).toEqual([...sent].sort((a, b) => a - b));
  await page.getByText("Send").click();
  await shows("said", "text+file text");

  // The answer never comes: the upload is under way until it is ended.
  await page.route("**/content", () => {});
  await page.setInputFiles("input", { ...large, name: "late.bin" });
  await shows("pending", "late.bin");
  await page.getByText("Cancel").click();
  await shows("pending", "none");
  await shows("stored", "bough-content://sha256/… AbortError");
  expect(await page.locator("#error").textContent()).toBe("");
  expect(faults).toEqual([]);
});
