import { beforeEach, expect, test, vi } from "vitest";
import type { Fact } from "../events/index.ts";
import type { Store } from "../log/store.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { createContext } from "./context.ts";
import { Sessions } from "./index.ts";
import { saveBranch } from "./turns.ts";

/** The numbers of the facts that were folded, by whoever folded them. */
const folded: number[] = [];

vi.mock("../projection/fold.ts", async (original) => {
  const real = await original<typeof import("../projection/fold.ts")>();
  return {
    ...real,
    fold(...[view, fact]: Parameters<typeof real.fold>) {
      folded.push((fact as Fact).seq);
      real.fold(view, fact);
    },
  };
});

beforeEach(() => {
  folded.length = 0;
});

const main = { sessionId: "s", branchId: "main" };

/** A store that answers an append when it is told to, or refuses it. */
function heldBack(): { store: Store; appends: { go(): void; fail(): void }[] } {
  const appends: { go(): void; fail(): void }[] = [];
  const inner = memoryStore();
  const store = new Proxy(inner, {
    get(target, name: keyof Store) {
      if (name !== "append") {
        const value = target[name];
        return typeof value === "function" ? value.bind(target) : value;
      }
      return async (...args: Parameters<Store["append"]>) => {
        await new Promise<void>((go, reject) => appends.push({ go, fail: () => reject(new Error("disk full")) }));
        return target.append(...args);
      };
    },
  });
  return { store, appends };
}

const turned = () => new Promise((resolve) => setImmediate(resolve));

test("a fact that is appended is folded once (Views-5), of a turn, a save, a revert or an answer", async () => {
  const context = createContext(memoryStore(), {});
  const sessions = new Sessions(context);
  await sessions.createSession("s");
  const writer = await sessions.beginTurn(main, "What is 1 and 2?");
  await writer.add({
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: "c", toolName: "add", input: {} }],
  });
  await writer.toolReturned({ callId: "c", toolName: "add", output: { type: "json", value: 3 } });
  await writer.append({
    ...{ type: "interaction.opened", id: "q", at: 1, turnId: writer.turnId },
    ...{ kind: "clarification", request: { question: "Sure?" } },
  });
  await sessions.answer(main, "q", { answer: "yes" });
  await writer.stage({ messages: [{ role: "assistant", content: "Three." }], state: { asked: true } });
  await saveBranch(context, main);
  const { seq } = (await context.views.load(main)).view;
  expect(folded).toEqual(Array.from({ length: seq }, (_, i) => i + 1));
  // It folds what was, to find the state it goes back to; its own fact once.
  await sessions.revertBranch(main, { toMessageIndex: 1 });
  expect(folded.filter((each) => each > seq)).toEqual([seq + 1]);
  const cold = createContext(sessions.store, {});
  expect(JSON.stringify((await context.views.load(main)).view)).toBe(
    JSON.stringify((await cold.views.load(main)).view),
  );
});

test("a view shows a fact only once the store has acknowledged it, and never one that was refused", async () => {
  const { store, appends } = heldBack();
  const context = createContext(store, {});
  const sessions = new Sessions(context);
  await sessions.createSession("s");
  const { view } = await context.views.load(main);
  const before = JSON.stringify(view);
  const refused = sessions.appendTurn(main, [{ role: "user", content: "Lost" }]).catch((error: Error) => error.message);
  await vi.waitFor(() => expect(appends.length).toBe(1));
  expect(JSON.stringify(view)).toBe(before);
  appends[0]!.fail();
  expect(await refused).toBe("disk full");
  expect(JSON.stringify(view)).toBe(before);
  const kept = sessions.appendTurn(main, [{ role: "user", content: "Kept" }]);
  await vi.waitFor(() => expect(appends.length).toBe(2));
  await turned();
  expect(JSON.stringify(view)).toBe(before);
  appends[1]!.go();
  await kept;
  expect(view.messages.map(({ content }) => content)).toEqual([[{ type: "text", text: "Kept" }]]);
});

test("of two appends decided on the same view, the later one is folded on top of the other", async () => {
  const { store, appends } = heldBack();
  const context = createContext(store, {});
  const sessions = new Sessions(context);
  await sessions.createSession("s");
  const beginning = sessions.beginTurn(main, "Hello");
  await vi.waitFor(() => expect(appends.length).toBe(1));
  appends[0]!.go();
  const writer = await beginning;
  const both = [writer.add({ role: "assistant", content: "One" }), writer.add({ role: "assistant", content: "Two" })];
  await vi.waitFor(() => expect(appends.length).toBe(3));
  for (const { go } of appends) go();
  await Promise.all(both);
  const { view } = await context.views.load(main);
  const cold = await createContext(store, {}).views.load(main);
  expect(JSON.stringify(view)).toBe(JSON.stringify(cold.view));
  expect(view.open?.messages.length).toBe(3);
});
