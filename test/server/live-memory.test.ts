import { describe } from "vitest";
import { describeLive } from "./live.cases.ts";

describe("live streams on memory", () => describeLive("memory"));
