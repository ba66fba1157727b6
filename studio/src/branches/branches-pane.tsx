// The branches of a session: the tree, and what can be done with each.

import { memo, useCallback, useMemo, useState } from "react";
import { isRemoteError } from "../data/bough.ts";
import { usePolled } from "../data/polled.ts";
import { useClient } from "../data/session.tsx";
import { Ask } from "../ui/dialog.tsx";
import { Menu } from "../ui/menu.tsx";
import { ago } from "../ui/time.ts";
import { sentenceOf, useToaster } from "../ui/toast.tsx";
import { VList } from "../ui/virtual.tsx";
import { type Branch, branchName, deepestDrawn, originOf, type TreeRow, treeRows } from "./tree-rows.ts";

interface BranchesPaneProps {
  readonly scope: { readonly agentId: string; readonly sessionId: string; readonly branchId: string };
  readonly branches: readonly Branch[];
  readonly onShow: (branchId: string) => void;
  readonly onCompare: (branchId: string) => void;
  readonly onChange: () => Promise<void>;
}

export const BranchesPane = memo(function BranchesPane({
  scope,
  branches,
  onShow,
  onCompare,
  onChange,
}: BranchesPaneProps) {
  const [filter, setFilter] = useState("");
  const [isAllShown, showAll] = useState(false);
  const hidden = useHidden(scope.sessionId, isAllShown);
  const all = isAllShown && hidden ? hidden : branches;
  const rows = useMemo(() => treeRows(all, scope.branchId, filter), [all, scope.branchId, filter]);
  const byId = useMemo(() => new Map(all.map((branch) => [branch.id, branch])), [all]);
  const [asked, ask] = useState<{ branch: Branch; what: "edit" | "delete" }>();
  return (
    <div className="branches">
      <div className="log-filter">
        <input
          type="search"
          aria-label="Find a branch"
          placeholder={branches.length > 1 ? `Find in ${branches.length} branches` : "Find a branch"}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <label className="check">
          <input type="checkbox" checked={isAllShown} onChange={(event) => showAll(event.target.checked)} />
          hidden
        </label>
      </div>
      <VList className="tree" role="tree" aria-label="Branches" data={rows}>
        {(row) => (
          <TreeRowView
            key={row.branch.id}
            row={row}
            isHere={row.branch.id === scope.branchId}
            origin={originOf(row.branch, byId)}
            onShow={onShow}
            onCompare={onCompare}
            onAsk={ask}
          />
        )}
      </VList>
      {asked?.what === "edit" && (
        <EditBranch scope={scope} branch={asked.branch} onDone={onChange} onClose={() => ask(undefined)} />
      )}
      {asked?.what === "delete" && (
        <DeleteBranch
          scope={scope}
          branch={asked.branch}
          onDone={async () => {
            if (asked.branch.id === scope.branchId) onShow(asked.branch.forkedFrom ?? "main");
            await onChange();
          }}
          onClose={() => ask(undefined)}
        />
      )}
    </div>
  );
});

/** Branches that work for others, on demand. */
function useHidden(sessionId: string, isWanted: boolean): readonly Branch[] | undefined {
  const client = useClient();
  const ask = useCallback(
    async () => (isWanted ? await client.listBranches(sessionId, { visibility: "all" }) : undefined),
    [client, sessionId, isWanted],
  );
  return usePolled(ask).value;
}

interface TreeRowProps {
  readonly row: TreeRow;
  readonly isHere: boolean;
  readonly origin: string;
  readonly onShow: (branchId: string) => void;
  readonly onCompare: (branchId: string) => void;
  readonly onAsk: (asked: { branch: Branch; what: "edit" | "delete" }) => void;
}

function TreeRowView({ row: { branch, depth, isOnPath }, isHere, origin, onShow, onCompare, onAsk }: TreeRowProps) {
  const [mark, words] = markOf(branch);
  const begins = branch.name === undefined && branch.forkedFrom !== undefined ? branch.firstWords : undefined;
  const indent = Math.min(depth, deepestDrawn);
  return (
    <div
      className={`tree-row${isHere ? " here" : ""}${isOnPath ? " path" : ""}${branch.visibility === "hidden" ? " hidden-branch" : ""}`}
      role="treeitem"
      aria-level={depth + 1}
      aria-selected={isHere}
      tabIndex={-1}
    >
      <span className="rails" aria-hidden="true" style={{ width: `${indent * 16}px` }} />
      <span className={`dot${mark}`} {...(words ? { role: "img", "aria-label": words } : { "aria-hidden": true })} />
      <button
        type="button"
        className="tree-name"
        onClick={() => onShow(branch.id)}
        title={[branch.id, origin].filter(Boolean).join(": ")}
      >
        <span className="one-line">{begins ?? branchName(branch)}</span>
        <span className="quiet number">{branch.messageCount}</span>
        {depth > deepestDrawn && <span className="quiet">depth {depth}</span>}
        {branch.tags.map((tag) => (
          <span key={tag} className="tag">
            {tag}
          </span>
        ))}
        <span className="quiet">{ago(branch.lastActivity)}</span>
      </button>
      <Menu
        label={`More about ${branchName(branch)}`}
        items={[
          { label: "Compare with this", onClick: () => onCompare(branch.id), disabled: isHere },
          { label: "Name and tags…", onClick: () => onAsk({ branch, what: "edit" }) },
          { label: "Delete…", isDangerous: true, onClick: () => onAsk({ branch, what: "delete" }) },
        ]}
      />
    </div>
  );
}

function markOf({ waiting, openTurnId, ended }: Branch): readonly [string, string] {
  if (waiting) return [" asking", "waits for you"];
  if (openTurnId !== undefined) return [" open", "has an open turn"];
  return ended === "failed" ? [" bad", "its last turn failed"] : ["", ""];
}

interface AboutBranch {
  readonly scope: BranchesPaneProps["scope"];
  readonly branch: Branch;
  readonly onDone: () => Promise<void>;
  readonly onClose: () => void;
}

function EditBranch({ scope, branch, onDone, onClose }: AboutBranch) {
  const client = useClient();
  const [error, setError] = useState<string>();
  const save = async (form: FormData) => {
    const name = String(form.get("name")).trim();
    const tags = String(form.get("tags"))
      .split(",")
      .map((tag) => tag.trim())
      .filter(Boolean);
    const description = String(form.get("description")).trim();
    try {
      const patch = { name: name || null, description: description || null, tags: tags.length > 0 ? tags : null };
      await client.branch({ ...scope, branchId: branch.id }).update(patch);
      await onDone();
      onClose();
    } catch (failure) {
      setError(sentenceOf(failure));
    }
  };
  return (
    <Ask
      title={`Branch ${branchName(branch)}`}
      action="Save"
      error={error}
      onSubmit={(form) => void save(form)}
      onClose={onClose}
    >
      <label>
        Name
        <input name="name" defaultValue={branch.name} placeholder={branch.id} maxLength={200} />
      </label>
      <label>
        What it is for
        <input name="description" defaultValue={branch.description} maxLength={1000} />
      </label>
      <label>
        Tags, with commas between
        <input name="tags" defaultValue={branch.tags.join(", ")} />
      </label>
    </Ask>
  );
}

function DeleteBranch({ scope, branch, onDone, onClose }: AboutBranch) {
  const client = useClient();
  const { say } = useToaster();
  const [error, setError] = useState<string>();
  const remove = async () => {
    try {
      await client.branch({ ...scope, branchId: branch.id }).delete();
      say(`Deleted ${branchName(branch)}.`);
      await onDone();
      onClose();
    } catch (failure) {
      setError(refusal(failure, branch));
    }
  };
  return (
    <Ask
      title={`Delete ${branchName(branch)}?`}
      action="Delete"
      isDangerous
      error={error}
      onSubmit={() => void remove()}
      onClose={onClose}
    >
      <p>What was said only on this branch is gone for good. What it shares with other branches stays there.</p>
    </Ask>
  );
}

/** Why a branch can't be deleted, in the words of the page. */
function refusal(error: unknown, branch: Branch): string {
  if (isRemoteError(error, "branch_protected"))
    return `${branchName(branch)} is the session’s main branch: it goes with the session.`;
  if (isRemoteError(error, "branch_has_children"))
    return branch.totalForks === 1
      ? "It has 1 fork. Delete it first."
      : `It has ${branch.totalForks} forks. Delete them first.`;
  if (isRemoteError(error, "run_active")) return "Something runs on it. Stop it first.";
  return sentenceOf(error);
}
