// A graph as it runs: its definition, checked, with everything in its place. Made once, when the graph is built.

import type { OutputChoice } from "../../runs/index.ts";
import type { SpawnableAgent } from "../../tools/index.ts";
import type {
  ConversationPolicy,
  FlowSchema,
  Reconciled,
  StepContext,
  StepRetry,
  Workflow,
  WorkflowOptions,
} from "../port.ts";
import type { GraphValues, OnNodeError, Router } from "./definition.ts";
import type { Judge, PlannedEdge } from "./edge.ts";
import type { Named } from "./named.ts";
import type { Shape } from "./shape.ts";
import type { Template } from "./template.ts";

/** Where a value comes from: a template, or a function. */
export type Source = Template | Named<(values: GraphValues) => unknown>;

export interface PlannedApproval {
  readonly when?: Judge;
  readonly message?: string;
  readonly timeoutMs?: number;
  readonly onTimeout?: "fail" | "approve" | "wait";
}

interface PlannedBase {
  readonly id: string;
  /** What it works with, if that is said. */
  readonly input?: Source;
  readonly approve?: PlannedApproval;
  readonly onError: OnNodeError;
  readonly join: "all" | "any";
  readonly retry?: Omit<StepRetry, "when"> & { readonly when?: Named<NonNullable<StepRetry["when"]>> };
  readonly timeoutMs?: number;
}

export interface PlannedAgent extends PlannedBase {
  readonly kind: "agent";
  readonly agent: Named<SpawnableAgent>;
  readonly output?: OutputChoice;
  readonly router?: Router;
  readonly instructions?: string;
  readonly conversation?: ConversationPolicy;
}

export interface PlannedFunction extends PlannedBase {
  readonly kind: "function";
  readonly run: Named<(values: GraphValues, context: StepContext) => unknown>;
  readonly output?: FlowSchema;
  readonly effect?: "retry" | "once";
  readonly reconcile?: Named<(context: StepContext) => Reconciled<unknown> | Promise<Reconciled<unknown>>>;
}

export interface PlannedWorkflow extends PlannedBase {
  readonly kind: "workflow";
  readonly workflow: Named<Workflow>;
}

export type PlannedNode = PlannedAgent | PlannedFunction | PlannedWorkflow;

export interface GraphPlan {
  readonly name: string;
  readonly options: WorkflowOptions;
  /** In the order of the definition. */
  readonly nodes: ReadonlyMap<string, PlannedNode>;
  readonly edges: readonly PlannedEdge[];
  readonly shape: Shape;
  readonly output?: Source;
}
