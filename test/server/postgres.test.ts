import { describe, opened } from "../postgres/kit.ts";
import { describeAll } from "./all.cases.ts";

describe("a server on PostgreSQL", () => describeAll(() => opened()));
