// A chat page on a branch. Run node examples/react-chat/server.mjs and open the address it prints.

import { defineTool } from "bough";
import { createServer, serve } from "bough/server";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";
import { servePage } from "./page.mjs";

/** The scripted model's reply to a prompt. */
function script(prompt) {
  const last = prompt.at(-1);
  if (last.role === "tool") {
    const { toolName, output } = last.content.at(-1);
    if (output.type === "execution-denied" || output.type.startsWith("error")) return "Then I leave it as it is.";
    return `${toolName} says: ${JSON.stringify(output.value)}. Anything else?`;
  }
  const asked = last.content.map(({ text = "" }) => text).join(" ");
  if (/delete|remove|clean/i.test(asked)) return { calls: [{ name: "remove", input: { path: "notes.txt" } }] };
  if (/where|time|page/i.test(asked)) return { calls: [{ name: "page_info", input: {} }] };
  return (
    `You said: "${asked}". I am a script and say the same to everybody. ` +
    'Try "delete my notes" to be asked for permission, or "what time is it here?" to call a tool in this page. ' +
    "Fork from any message to try another way on from there."
  );
}

const tools = {
  remove: defineTool({
    description: "Deletes a file of the user's.",
    input: z.object({ path: z.string() }),
    permission: true,
    execute: ({ path }) => `${path} is gone (not really)`,
  }),
  page_info: defineTool({
    description: "What the user's browser knows: local time, time zone, language.",
    input: z.object({}),
  }),
};

const page = await servePage();
const agent = { model: modelFor(script), instructions: "You are helpful and brief.", tools };
const server = createServer({ agents: { helper: agent }, store: "sqlite:./react-chat.db", origins: [page.origin] });
const { url } = await serve(server, { port: 0 });
console.log(aboutModel);
console.log(`Open ${page.origin}/#url=${encodeURIComponent(url)}&token=${server.token}`);
