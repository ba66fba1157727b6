// Pure folds from facts to what people and models see. Safe in a browser.

export { fold, project } from "./fold.ts";
export { type Parting, type PartingBranch, partings, type Version } from "./partings.ts";
export { transcript } from "./transcript.ts";
export { type BranchPlace, BranchTree, type TreeNode } from "./tree.ts";
export {
  type Asleep,
  type BranchHeader,
  type BranchView,
  type Cleared,
  copyView,
  emptyView,
  type ForkFact,
  type Interaction,
  type OpenTurn,
  type Overlay,
  PartialView,
  type Revert,
  type RunRecord,
  type StepRecord,
  type TurnOutcome,
  type TurnRecord,
  type TurnStatus,
} from "./view.ts";
