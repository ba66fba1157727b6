// Pure folds from facts to what people and models see. Safe in a browser.

export { fold, project } from "./fold.ts";
export { type RowHeader, turnPatch } from "./header.ts";
export {
  canSeal,
  cutSegment,
  joinSegments,
  nothingSealed,
  type Piece,
  parseHead,
  parseSegment,
  type Sealed,
  stillSealed,
} from "./segment.ts";
export { resultsId } from "./tools.ts";
export { transcript } from "./transcript.ts";
export { type BranchPlace, BranchTree, type TreeNode } from "./tree.ts";
export {
  type BranchHeader,
  type BranchView,
  type Compaction,
  copyTurn,
  copyView,
  emptyView,
  type ForkFact,
  type Interaction,
  type OpenTurn,
  type RunRecord,
  stateOf,
  type TurnOutcome,
  type TurnRecord,
  type TurnStatus,
} from "./view.ts";
