// The model behind the servers. The last message of the user says what it answers: so many deltas of so many characters.

import { prose, seeded } from "../../lib/words.mjs";

const text = prose(seeded(5), 1 << 16);
const usage = { inputTokens: { total: 100 }, outputTokens: { total: 100 } };

/** What to ask for. With `paced`, every delta has a turn of the event loop for itself, as those from a network have. */
export function ask({ deltas, size, paced = false }) {
  return JSON.stringify({ deltas, size, paced });
}

export function model() {
  return {
    specificationVersion: "v4",
    provider: "mock",
    modelId: "mock",
    supportedUrls: {},
    async doStream({ prompt }) {
      const { deltas, size, paced } = JSON.parse(prompt.at(-1).content[0].text);
      const parts = partsOf(deltas, size);
      let next = 0;
      return {
        stream: new ReadableStream(
          {
            async pull(controller) {
              if (paced) await nextTurn();
              if (next < parts.length) controller.enqueue(parts[next++]);
              else controller.close();
            },
          },
          { highWaterMark: 0 },
        ),
      };
    },
  };
}

export function nextTurn() {
  return new Promise((resolve) => setImmediate(resolve));
}

function partsOf(deltas, size) {
  const id = "text-1";
  const delta = (i) => text.slice((i * size) % (text.length - size || 1)).slice(0, size);
  return [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id },
    ...Array.from({ length: deltas }, (_, i) => ({ type: "text-delta", id, delta: delta(i) })),
    { type: "text-end", id },
    { type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } },
  ];
}
