import { flowCases } from "../workflows/flow.cases.ts";
import { describe, opened } from "./kit.ts";

describe("workflows on PostgreSQL", () => flowCases(() => opened(), { every: 5 }));
