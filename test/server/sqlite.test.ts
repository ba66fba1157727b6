import { describe } from "vitest";
import { describeAll } from "./all.cases.ts";
import { freshDirectory, openSqlite } from "./kit.ts";
import { describeResuming } from "./resuming.ts";

describe("a server on SQLite", () => describeAll(openSqlite));
describe("resuming on SQLite", () => describeResuming(() => ({ url: `sqlite:${freshDirectory()}/bough.db` })));
