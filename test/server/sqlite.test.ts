import { describe } from "vitest";
import { describeAll } from "./all.cases.ts";
import { openSqlite } from "./kit.ts";

describe("a server on SQLite", () => describeAll(openSqlite));
