// Workflows: code and graphs of durable steps.

export type {
  AgentNodeOptions,
  AgentNodeResult,
  AskOptions,
  ConversationPolicy,
  FirstOf,
  Flow,
  FlowBranches,
  FlowSchema,
  MapOptions,
  OnChange,
  Reconciled,
  RecordedStep,
  StepContext,
  StepOptions,
  StepRetry,
  WaitOptions,
  Workflow,
  WorkflowOptions,
} from "./port.ts";
export {
  createWorkflow,
  type ExecutionOptions,
  type TypedRunner,
  WorkflowRunner,
  type WorkflowRunnerOptions,
} from "./runner.ts";
export { workflow } from "./workflow.ts";
