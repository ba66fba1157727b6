// Long chat: a conversation is compacted, the summary has lost a fact, a check finds out, and the compaction is taken back.

import { createAgent, summary } from "bough";
import { aboutModel, modelFor } from "../model.mjs";

const facts = [
  "We move the shop to the new server on Friday.",
  "The database listens on port 8443, not on the usual one.",
  "Never delete the table invoices_2019: the auditors need it.",
  "Ines has the keys, Tom is on call.",
  "The announcement goes out when the shop is back.",
];
const questions = ["Which port does the database use?", "Which table must never be deleted?", "Who is on call?"];

const agent = createAgent({
  // Without a key, this model knows what is in its prompt and nothing else. Its summary is careless: it forgets the port.
  model: modelFor((prompt) => {
    const seen = JSON.stringify(prompt);
    const knows = (words, answer) => (seen.includes(words) ? answer : "The conversation does not say.");
    if (seen.includes("Write a summary"))
      return "They move the shop on Friday. Ines has the keys, Tom is on call. The table invoices_2019 must stay.";
    const asked = questions.findIndex((question) => seen.endsWith(`${question}"}]}]`));
    if (asked === 0) return knows("8443", "The database listens on port 8443.");
    if (asked === 1) return knows("invoices_2019", "The table invoices_2019.");
    if (asked === 2) return knows("Tom is on call", "Tom is on call.");
    return "Noted.";
  }),
  instructions: "You help with a move to a new server.",
  compaction: { strategy: summary() },
});

console.log(aboutModel, "\n");
await agent.createSession("move");
const replies = [];
const say = async (input) => {
  const { messages } = await agent.run(input, "move").result;
  replies.push(messages.at(-1).id);
};
for (const fact of facts) await say(fact);

// The log keeps every message; models see the summary and the last turn.
const { id, messages } = await agent.compact("move", { keep: { turns: 1 } });
console.log(`${messages} messages are shown to the model as one summary.\n`);

// The same questions, with the summary and with the original words.
const check = await agent.checkCompaction("move", { questions });
for (const { question, original, compacted, score } of check.answers) {
  console.log(`${score < 0.5 ? "lost" : "kept"}  ${question}\n      before: ${original}\n      after:  ${compacted}`);
}
console.log(`\nScore ${check.score.toFixed(2)}.`);

if (check.score < 1) {
  await agent.uncompact("move", id);
  console.log("The compaction is taken back: the model sees the original words again.\n");
}
await say("What is left to do?");

// Every reply says what it was made from, and what it was sent is rebuilt from the log.
const prompt = await agent.promptOf("move", replies.at(-1));
console.log(`The last prompt, verified by its hash: ${prompt.isVerified}`);
for (const { role, source } of prompt.messages) console.log(`  ${role.padEnd(9)} ${source.type}`);
const { isPrefix, share } = await agent.diffPrompts("move", replies.at(-2), replies.at(-1));
console.log(`It begins with all of the prompt before it: ${isPrefix} (${Math.round(100 * share)} %).`);
await agent.close();
