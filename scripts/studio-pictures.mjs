// Makes docs/studio-*.png: a server with a scripted agent, real runs, and a real browser that looks at them.
//   node scripts/studio-pictures.mjs         writes the pictures (needs a build and Chromium; BOUGH_CHROMIUM names it)

import { join } from "node:path";
import { chromium } from "playwright-core";
import { createClient } from "../dist/client/index.js";
import { defineTool } from "../dist/index.js";
import { scriptedModel } from "../dist/scripted/index.js";
import { createServer, serve } from "../dist/server/index.js";

const docs = join(import.meta.dirname, "..", "docs");
const executablePath = process.env.BOUGH_CHROMIUM ?? "/usr/bin/chromium";

const open = {
  reasoning: "I should look at the tracker first.",
  text: "Let me look at the tracker.",
  calls: [{ name: "search_issues", input: { project: "billing" } }],
};
const findings = `Two issues carry the launch label.

| Issue | What | Owner | Days |
| --- | --- | :-: | --: |
| #412 | Retry storms on 429 | ada | 1 |
| #431 | Invoice PDF has the wrong VAT | – | 2 |

1. Fix **#412** first: it can take other tenants down with it.
2. Give #431 an owner today, or leave the PDF out of the launch.`;
const retries = `Honour \`Retry-After\`, and give every client a budget:

\`\`\`ts
for (let attempt = 1; ; attempt++) {
  try {
    return await call();
  } catch (error) {
    if (attempt === attempts) throw error; // the budget is spent
  }
}
\`\`\``;

function reply(prompt) {
  const last = prompt.at(-1);
  if (last.role === "tool") return findings;
  const text = last.content.map((part) => part.text ?? "").join("");
  if (/deploy/i.test(text))
    return { text: "I ask first.", calls: [{ name: "deploy", input: { target: "production" } }] };
  if (/gateway/.test(text))
    return "Then let the gateway decide: it knows how loaded each tenant is, and answers `429` before we do.";
  return /open/.test(text) ? open : retries;
}

const schema = (properties) => ({ jsonSchema: { type: "object", properties } });
const tools = {
  search_issues: defineTool({
    description: "Finds issues.",
    input: schema({ project: { type: "string" } }),
    effect: "read",
    execute: () => [{ id: 412 }, { id: 431 }],
  }),
  deploy: defineTool({
    description: "Deploys.",
    input: schema({ target: { type: "string" } }),
    permission: true,
    execute: () => "deployed",
  }),
};
const agents = { planner: { model: scriptedModel(reply), tools } };
const server = createServer({ agents, store: "memory:", studio: true });
const { url, startUrl, close } = await serve(server, { port: 0 });
const client = createClient({ url, token: server.token, agentId: "planner" });

await client.createSession("launch", { metadata: { title: "Launch checklist" } });
const main = client.branch("launch");
await main.run("We ship the billing service on Thursday. What is still open?").result;
await main.run("How would you fix the retry storms?").result;
const { messages } = await main.state();
const asked = messages.findLast(({ role }) => role === "user");
const other = await main.edit(asked.id, "How would you fix the retry storms? We can change the gateway.");
await other.run.result;
await other.branch.update({ name: "at the gateway", tags: ["idea"] });
const again = await main.regenerate(messages.at(-1).id);
await again.run.result;
await again.branch.update({ name: "with a queue" });
await main.submit("Then deploy, please.");

const browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
const pictures = [
  { name: "studio-light", place: `#/s/launch/main?m=${asked.id}` },
  { name: "studio-time", place: "#/s/launch/main?at=9&pane=log", colorScheme: "dark" },
];
for (const { name, place, colorScheme = "light" } of pictures) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme });
  const page = await context.newPage();
  await page.goto(startUrl);
  await page.getByRole("navigation", { name: "Sessions" }).waitFor();
  await page.evaluate((to) => {
    location.hash = to;
  }, place);
  await page.locator("article").last().waitFor();
  if (!place.includes("at=")) await page.getByRole("heading", { name: "Allow deploy?" }).waitFor();
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(1000);
  await page.screenshot({ path: join(docs, `${name}.png`) });
  await context.close();
  console.log(`docs/${name}.png is written.`);
}
await browser.close();
await close();
process.exit(0);
