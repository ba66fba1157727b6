import { describe, freshSchema, opened, server } from "../postgres/kit.ts";
import { describeAll } from "./all.cases.ts";
import { describeProcesses } from "./processes.ts";
import { describeResuming } from "./resuming.ts";

const openPlace = () => ({ url: server().url, schema: freshSchema() });

describe("a server on PostgreSQL", () => describeAll(() => opened()));
describe("two servers on one PostgreSQL", () => describeProcesses(openPlace));
describe("resuming on PostgreSQL", () => describeResuming(openPlace));
