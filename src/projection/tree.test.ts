import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BranchTree, shownNodes, type TreeNode } from "./tree.ts";

const tree = new BranchTree([
  { id: "main" },
  { id: "a", parentId: "main", forkMessageId: "m1" },
  { id: "b", parentId: "main", forkMessageId: "m2" },
  { id: "c", parentId: "main", forkMessageId: "m1" },
  { id: "aa", parentId: "a", forkMessageId: "m1" },
  { id: "root fork", parentId: "main" },
  { id: "free" },
]);

describe("the place of a branch", () => {
  test("is told by its parent and its fork point", () => {
    expect(tree.place("c")).toEqual({
      ancestors: ["main"],
      children: [],
      totalForks: 0,
      siblings: ["main", "a", "c"],
      siblingIndex: 2,
      totalSiblings: 3,
      previousSibling: "a",
    });
    expect(tree.place("a")).toMatchObject({
      previousSibling: "main",
      nextSibling: "c",
      children: ["aa"],
      totalForks: 1,
    });
    expect(tree.place("aa")).toMatchObject({ ancestors: ["main", "a"], siblings: ["a", "aa"] });
    expect(tree.place("root fork").siblings).toEqual(["main", "root fork"]);
  });

  test("of a branch without a parent is among all such", () => {
    expect(tree.place("main")).toMatchObject({
      siblings: ["main", "free"],
      siblingIndex: 0,
      children: ["a", "b", "c", "root fork"],
    });
    expect([tree.roots, tree.ids.length]).toEqual([["main", "free"], 7]);
    expect(tree.siblingsOf("nobody")).toEqual([]);
  });

  test("is consistent in any tree: everyone stands once in a group, neighbours agree, ancestors lead to a root", () => {
    const nodes = fc.array(fc.record({ parent: fc.nat(), point: fc.nat(2) }), { maxLength: 30 });
    fc.assert(
      fc.property(nodes, (records) => {
        const list: TreeNode[] = [{ id: "0" }];
        for (const { parent, point } of records) {
          const parentId = String(parent % list.length);
          list.push({ id: String(list.length), parentId, ...(point > 0 && { forkMessageId: `m${point}` }) });
        }
        const any = new BranchTree(list);
        for (const { id, parentId } of list) {
          const place = any.place(id);
          expect(place.siblings[place.siblingIndex]).toBe(id);
          expect(new Set(place.siblings).size).toBe(place.totalSiblings);
          expect(place.siblings[0]).toBe(parentId ?? "0");
          if (place.nextSibling !== undefined) expect(any.place(place.nextSibling).previousSibling).toBe(id);
          expect(place.ancestors.at(-1)).toBe(parentId);
          if (parentId !== undefined) expect(any.childrenOf(parentId)).toContain(id);
          expect(place.ancestors.length === 0 || any.roots.includes(place.ancestors[0]!)).toBe(true);
        }
      }),
    );
  });

  test("Tree-1. the places of 20,000 branches hold as many entries as there are branches, three times at most", () => {
    const wide = Array.from({ length: 20_000 }, (_, i) => ({
      id: `w${i}`,
      parentId: "main",
      forkMessageId: `m${i % 3}`,
    }));
    const deep = Array.from({ length: 20_000 }, (_, i) => ({ id: `d${i}`, parentId: i === 0 ? "main" : `d${i - 1}` }));
    const list: TreeNode[] = [{ id: "main" }, ...wide, ...deep];
    const all = new BranchTree(list);
    const arrays = new Set<readonly string[]>();
    for (const { id } of list) {
      const { siblings, children } = all.position(id);
      arrays.add(siblings).add(children);
    }
    let entries = 0;
    for (const array of arrays) entries += array.length;
    expect(entries).toBeLessThanOrEqual(3 * list.length);
  });
});

describe("a tree without its hidden branches", () => {
  test("lets what was forked from one take its place", () => {
    const shown = shownNodes([
      { id: "main" },
      { id: "a", parentId: "main", forkMessageId: "m1" },
      { id: "h", parentId: "main", forkMessageId: "m1", isHidden: true },
      { id: "h2", parentId: "h", forkMessageId: "m7", isHidden: true },
      { id: "v", parentId: "h2", forkMessageId: "m9" },
      { id: "w", parentId: "v", forkMessageId: "m9" },
      { id: "free", isHidden: true },
      { id: "root", parentId: "free", forkMessageId: "m3" },
    ]);
    const tree = new BranchTree(shown);
    expect(tree.ids).toEqual(["main", "a", "v", "w", "root"]);
    expect(tree.place("v")).toMatchObject({ ancestors: ["main"], siblings: ["main", "a", "v"], children: ["w"] });
    expect(tree.place("w")).toMatchObject({ ancestors: ["main", "v"], siblings: ["v", "w"] });
    expect(tree.roots).toEqual(["main", "root"]);
    expect(tree.parentOf("root")).toBeUndefined();
  });

  const records = fc.array(fc.record({ parent: fc.nat(), point: fc.nat(2), isHidden: fc.boolean() }), {
    maxLength: 30,
  });
  const listOf = (given: readonly { parent: number; point: number; isHidden: boolean }[]): TreeNode[] => {
    const list: TreeNode[] = [{ id: "0" }];
    for (const { parent, point, isHidden } of given) {
      const from = parent % (list.length + 1);
      const fork = from === list.length ? {} : { parentId: String(from), forkMessageId: `m${point}` };
      list.push({ id: String(list.length), ...fork, ...(isHidden && { isHidden }) });
    }
    return list;
  };

  test("names no hidden one anywhere and leaves out no other: all can be reached from the roots", () => {
    fc.assert(
      fc.property(records, (given) => {
        const list = listOf(given);
        const all = new BranchTree(list);
        const shown = new BranchTree(shownNodes(list));
        const seen = list.filter(({ isHidden }) => !isHidden).map(({ id }) => id);
        expect(shown.ids).toEqual(seen);
        const reached = [...shown.roots];
        for (const id of reached) reached.push(...shown.childrenOf(id));
        expect([...reached].sort()).toEqual([...seen].sort());
        for (const id of seen) {
          const place = shown.place(id);
          for (const each of [...place.ancestors, ...place.children, ...place.siblings]) expect(seen).toContain(each);
          expect(place.siblings[place.siblingIndex]).toBe(id);
          expect(place.ancestors).toEqual(all.ancestorsOf(id).filter((each) => seen.includes(each)));
        }
      }),
    );
  });

  test("is the same tree whatever hidden branches came and went in it", () => {
    fc.assert(
      fc.property(records, (given) => {
        const list = listOf(given);
        const parents = new Set(list.map(({ parentId }) => parentId));
        const without = list.filter(({ id, isHidden }) => !isHidden || parents.has(id));
        const [one, other] = [list, without].map((nodes) => new BranchTree(shownNodes(nodes)));
        for (const id of one!.ids) expect(other!.place(id)).toEqual(one!.place(id));
      }),
    );
  });
});
