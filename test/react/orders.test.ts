// onEvent of useBranch in a browser: a program's own events reach the component under their own types, once each.

import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineEvent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { given } from "../server/kit.ts";
import { launch, missing } from "./browser.ts";
import { servePage } from "./page.ts";

const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
const order = defineTool({
  input: z.object({}),
  async execute(_input, context) {
    await context.emit(orderPlaced, { total: 12 });
    return "ordered";
  },
});

test.skipIf(missing)("a page hears own events once each, with the function of its latest render", async () => {
  const [origin, browser] = await Promise.all([servePage("./orders.mjs"), launch()]);
  onTestFinished(() => browser.close());
  const model = scriptedModel((prompt) =>
    prompt.at(-1)!.role === "tool" ? "Done." : { calls: [{ name: "order", input: {} }] },
  );
  const g = await given([], { agent: { model, tools: { order } }, events: [orderPlaced], origins: [origin] });
  const page = await browser.newPage();
  page.setDefaultTimeout(10_000);
  const faults: string[] = [];
  page.on("pageerror", ({ message }) => faults.push(message));
  await page.goto(`${origin}/#${new URLSearchParams({ url: g.serving.url, token: g.server.token! })}`);
  const shows = (id: string, text: string) => page.locator(`#${id}:text-is("${text}")`).waitFor();
  await shows("status", "idle");
  await page.getByText("Order").click();
  await shows("totals", "12");
  await shows("status", "idle");
  await page.getByText("Times ten").click();
  await page.getByText("Order").click();
  await shows("totals", "12 120");
  await shows("status", "idle");
  expect(await page.locator("#totals").textContent()).toBe("12 120");
  expect(faults).toEqual([]);
});
