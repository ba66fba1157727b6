// Workflows: code and graphs of durable steps.

export type { Condition, FieldCondition, NamedFunction } from "./graph/condition.ts";
export type {
  AgentNode,
  Approval,
  EdgeOptions,
  EdgeWhen,
  FunctionNode,
  GraphBindings,
  GraphEdge,
  GraphNode,
  GraphSettings,
  GraphValues,
  Handoff,
  NodeRetry,
  OnNodeError,
  Router,
  WorkflowNode,
} from "./graph/definition.ts";
export { type DrawOptions, type Graph, graph, isGraph } from "./graph/graph.ts";
export { type DrawnStep, drawSteps } from "./graph/mermaid.ts";
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
export { type ExecutionStep, executionSteps } from "./steps.ts";
export { isWorkflow, workflow } from "./workflow.ts";
