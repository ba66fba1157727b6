// The tree of a session's branches, derived from the fork rows alone: nothing about it is stored, so nothing can disagree.

/** What the tree needs to know of a branch; given in the order of creation. */
export interface TreeNode {
  readonly id: string;
  readonly parentId?: string;
  /** The last message shared with the parent; absent for a fork before the first message. */
  readonly forkMessageId?: string;
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

export class BranchTree {
  readonly #nodes = new Map<string, TreeNode>();
  readonly #children = new Map<string, TreeNode[]>();
  readonly #roots: string[] = [];

  constructor(nodes: Iterable<TreeNode>) {
    for (const node of nodes) {
      this.#nodes.set(node.id, node);
      if (node.parentId === undefined) this.#roots.push(node.id);
      else this.#children.set(node.parentId, [...(this.#children.get(node.parentId) ?? []), node]);
    }
  }

  get ids(): readonly string[] {
    return [...this.#nodes.keys()];
  }

  get roots(): readonly string[] {
    return this.#roots;
  }

  childrenOf(id: string): readonly string[] {
    return (this.#children.get(id) ?? []).map((node) => node.id);
  }

  ancestorsOf(id: string): readonly string[] {
    const ancestors: string[] = [];
    for (let at = this.#nodes.get(id)?.parentId; at !== undefined; at = this.#nodes.get(at)?.parentId)
      ancestors.push(at);
    return ancestors.reverse();
  }

  siblingsOf(id: string): readonly string[] {
    const node = this.#nodes.get(id);
    if (!node) return [];
    const { parentId, forkMessageId } = node;
    if (parentId === undefined) return this.#roots;
    const forks = this.#children.get(parentId) ?? [];
    return [parentId, ...forks.filter((fork) => fork.forkMessageId === forkMessageId).map((fork) => fork.id)];
  }

  place(id: string): BranchPlace {
    const siblings = this.siblingsOf(id);
    const siblingIndex = siblings.indexOf(id);
    const children = this.childrenOf(id);
    const previousSibling = siblings[siblingIndex - 1];
    const nextSibling = siblings[siblingIndex + 1];
    return {
      ancestors: this.ancestorsOf(id),
      children,
      totalForks: children.length,
      siblings,
      siblingIndex,
      totalSiblings: siblings.length,
      ...(previousSibling !== undefined && { previousSibling }),
      ...(nextSibling !== undefined && { nextSibling }),
    };
  }
}
