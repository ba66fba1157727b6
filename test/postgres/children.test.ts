import { treeCases } from "../children/trees.cases.ts";
import { describe, opened } from "./kit.ts";

describe("children on PostgreSQL", () => treeCases(() => opened(), { runs: 6 }));
