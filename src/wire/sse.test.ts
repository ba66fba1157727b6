import { expect, test } from "vitest";
import { sseHeartbeat, sseText } from "./frames.ts";
import { SseReader } from "./sse.ts";

const text = sseText('{"a":1}', 7) + sseHeartbeat + sseText('{"b":"é"}') + sseText('{"c":3}', 8);
const all = [{ id: "7", data: '{"a":1}' }, { data: '{"b":"é"}' }, { id: "8", data: '{"c":3}' }];

test("events come whole, wherever the text is cut", () => {
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = new SseReader();
    expect([...reader.read(text.slice(0, cut)), ...reader.read(text.slice(cut))]).toEqual(all);
  }
});

test("what is cut off in the middle does not count", () => {
  for (let cut = 0; cut < text.length; cut++) {
    const seen = new SseReader().read(text.slice(0, cut));
    expect(seen).toEqual(all.slice(0, seen.length));
  }
});
