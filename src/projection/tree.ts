// BranchTree: the tree of a session's branches, derived from the fork rows alone, so nothing stored can disagree with it.
//
//   Tree-1. Building it, and the places of all branches but for their ancestors, take time and memory linear in the branches:
//       branches that share a group of siblings, or children, share one array.
//   Tree-2. Ancestors are walked when they are asked for: those of all branches of a chain would be quadratic.

/** What the tree needs to know of a branch; given in the order of creation. */
export interface TreeNode {
  readonly id: string;
  readonly parentId?: string;
  /** The last message shared with the parent; absent for a fork before the first message. */
  readonly forkMessageId?: string;
  readonly isHidden?: boolean;
}

/** Where a branch stands among the others. */
export interface BranchPlace {
  /** Root first, the direct parent last. */
  readonly ancestors: readonly string[];
  /** Direct forks, oldest first. */
  readonly children: readonly string[];
  readonly totalForks: number;
  /** Branches with the same parent and the same fork point, the source first; without a parent, all such branches. */
  readonly siblings: readonly string[];
  readonly siblingIndex: number;
  readonly totalSiblings: number;
  readonly previousSibling?: string;
  readonly nextSibling?: string;
}

/**
 * The tree without its hidden branches. What was forked from one of them takes its place: it stands below the nearest branch
 * that is shown, at the point where the hidden one was forked.
 */
export function shownNodes(nodes: Iterable<TreeNode>): TreeNode[] {
  const hidden = new Map<string, TreeNode>();
  const shown: TreeNode[] = [];
  for (const node of nodes) {
    // A branch is created after the one it was forked from, so what is found here is below a shown one already (Tree-1).
    const { forkMessageId: _at, parentId: _from, ...own } = node;
    const from = node.parentId === undefined ? undefined : hidden.get(node.parentId);
    const { parentId, forkMessageId } = from ?? node;
    const placed = { ...own, ...(parentId !== undefined && { parentId, ...(forkMessageId && { forkMessageId }) }) };
    if (node.isHidden) hidden.set(node.id, placed);
    else shown.push(placed);
  }
  return shown;
}

/** The branches of a session as a tree. */
export class BranchTree {
  readonly #nodes = new Map<string, TreeNode>();
  readonly #children = new Map<string, string[]>();
  readonly #roots: string[] = [];
  /** By parent, then by the message they were forked at. */
  readonly #groups = new Map<string, Map<string | undefined, string[]>>();
  /** Where a branch stands in its group. */
  readonly #indexes = new Map<string, number>();

  constructor(nodes: Iterable<TreeNode>) {
    for (const node of nodes) {
      this.#nodes.set(node.id, node);
      const group = this.#groupOf(node);
      this.#indexes.set(node.id, group.length);
      group.push(node.id);
      if (node.parentId === undefined) continue;
      const children = this.#children.get(node.parentId);
      if (children) children.push(node.id);
      else this.#children.set(node.parentId, [node.id]);
    }
  }

  get ids(): readonly string[] {
    return [...this.#nodes.keys()];
  }

  get roots(): readonly string[] {
    return this.#roots;
  }

  parentOf(id: string): string | undefined {
    return this.#nodes.get(id)?.parentId;
  }

  childrenOf(id: string): readonly string[] {
    return this.#children.get(id) ?? [];
  }

  ancestorsOf(id: string): readonly string[] {
    const ancestors: string[] = [];
    for (let at = this.#nodes.get(id)?.parentId; at !== undefined; at = this.#nodes.get(at)?.parentId)
      ancestors.push(at);
    return ancestors.reverse();
  }

  siblingsOf(id: string): readonly string[] {
    const node = this.#nodes.get(id);
    return node ? this.#groupOf(node) : [];
  }

  /** Where the branch stands, its ancestors aside. */
  position(id: string): Omit<BranchPlace, "ancestors"> {
    const siblings = this.siblingsOf(id);
    const siblingIndex = this.#indexes.get(id) ?? -1;
    const children = this.childrenOf(id);
    const previousSibling = siblings[siblingIndex - 1];
    const nextSibling = siblings[siblingIndex + 1];
    return {
      children,
      totalForks: children.length,
      siblings,
      siblingIndex,
      totalSiblings: siblings.length,
      ...(previousSibling !== undefined && { previousSibling }),
      ...(nextSibling !== undefined && { nextSibling }),
    };
  }

  place(id: string): BranchPlace {
    return { ancestors: this.ancestorsOf(id), ...this.position(id) };
  }

  /** The group that a branch belongs to; one of forks begins with their source. */
  #groupOf({ parentId, forkMessageId }: TreeNode): string[] {
    if (parentId === undefined) return this.#roots;
    let groups = this.#groups.get(parentId);
    if (!groups) {
      groups = new Map();
      this.#groups.set(parentId, groups);
    }
    let group = groups.get(forkMessageId);
    if (!group) {
      group = [parentId];
      groups.set(forkMessageId, group);
    }
    return group;
  }
}
