import { expect, test } from "vitest";
import { branchBody } from "../sessions/bodies.ts";
import { placeBranch } from "../sessions/branch.ts";
import { findBranches, type UnplacedBranches } from "../sessions/branches.ts";
import { createContext } from "../sessions/context.ts";
import { Sessions } from "../sessions/index.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { branchPage, treeBody } from "./branch-pages.ts";

async function givenSession() {
  const store = memoryStore();
  const context = createContext(store, {});
  await new Sessions(context).createSession("s");
  const fork = (id: string, branchId: string, header = {}) =>
    store.createBranch("s", { id, header: { name: id, ...header }, events: [], parent: { branchId, seq: 1 } });
  return { store, fork, find: () => findBranches(context, "s") };
}

async function givenChain(depth: number): Promise<UnplacedBranches> {
  const { find, fork } = await givenSession();
  for (let i = 1; i <= depth; i++) await fork(`b${i}`, i === 1 ? "main" : `b${i - 1}`);
  return find();
}

async function givenForks(width: number): Promise<UnplacedBranches> {
  const { find, fork } = await givenSession();
  for (let i = 1; i <= width; i++) await fork(`b${i}`, "main");
  return find();
}

/** All pages, as JSON. */
function pagesOf(branches: UnplacedBranches, limit?: number): string[] {
  const pages: string[] = [];
  let cursor: string | undefined;
  do {
    const page = branchPage(branches, { ...(limit && { limit }), ...(cursor && { cursor }) });
    pages.push(JSON.stringify(page));
    cursor = page.cursor;
  } while (cursor);
  return pages;
}

const idsIn = (pages: readonly string[]) =>
  pages.flatMap((page) => JSON.parse(page).branches.map(({ id }: { id: string }) => id));

test("pages hold every branch once, in order", async () => {
  const branches = await givenForks(120);
  const pages = pagesOf(branches);
  expect(pages).toHaveLength(3);
  expect(idsIn(pages)).toEqual(branches.records.map(({ branchId }) => branchId));
  expect(pagesOf(branches, 121)).toHaveLength(1);
});

test.each([
  ["forks of each other", givenChain],
  ["forks of one branch", givenForks],
])("what the list of 5,000 %s says of a branch is as long as in a list of 500", async (_, given) => {
  const perBranch = async (n: number) => pagesOf(await given(n)).join("").length / n;
  expect(await perBranch(5000)).toBeLessThan((await perBranch(500)) * 1.1);
});

test("one branch names at most 1,000 ancestors and children, and says how many there are", async () => {
  const place = ({ records, tree }: UnplacedBranches, i: number) => branchBody(placeBranch(records.at(i)!, tree));
  const deepest = place(await givenChain(1500), -1);
  expect(deepest.totalAncestors).toBe(1500);
  expect(deepest.ancestors).toHaveLength(1000);
  expect(deepest.ancestors.at(-1)).toBe("b1499");
  const widest = place(await givenForks(1500), 0);
  expect(widest.totalForks).toBe(1500);
  expect(widest.children).toHaveLength(1000);
  expect(widest.children[0]).toBe("b1");
});

test("a page ends once it is longer than 1 MiB, whatever limit was asked for", async () => {
  const { find, fork } = await givenSession();
  for (let i = 1; i <= 100; i++) await fork(`b${i}`, "main", { description: "x".repeat(16_000) });
  const branches = await find();
  const pages = pagesOf(branches, 1000);
  for (const page of pages) expect(page.length).toBeLessThan(1024 * 1024 + 20_000);
  expect(idsIn(pages)).toEqual(branches.records.map(({ branchId }) => branchId));
});

test("a tree longer than 4 MiB is refused", async () => {
  const { find, fork } = await givenSession();
  for (let i = 1; i <= 300; i++) await fork(`b${i}`, "main", { description: "x".repeat(16_000) });
  const branches = await find();
  expect(() => treeBody(branches)).toThrow(/longer than/);
});

test("a cursor whose branch is gone leads on, and leaves none out", async () => {
  const { store, find, fork } = await givenSession();
  for (let i = 1; i <= 10; i++) await fork(`b${i}`, "main");
  const { branches, cursor } = branchPage(await find(), { limit: 5 });
  const seen = branches.map(({ id }) => id);
  await store.deleteBranch({ sessionId: "s", branchId: seen.at(-1)! });
  const rest = branchPage(await find(), { cursor: cursor!, limit: 100 }).branches;
  for (let i = 1; i <= 10; i++) expect([...seen, ...rest.map(({ id }) => id)]).toContain(`b${i}`);
});

test("a tree that is too deep to be written is refused, and any other is not", async () => {
  const tree = JSON.stringify(treeBody(await givenChain(499)));
  expect(tree.match(/"forks"/g)).toHaveLength(500);
  const deeper = await givenChain(500);
  expect(() => treeBody(deeper)).toThrow(/paged list of branches/);
});
