// Everything that PROTOCOL.md promises, on one store. Each store has a test file that calls this and nothing else.

import { describe } from "vitest";
import { describeAttacks } from "./attacks.cases.ts";
import { describeFuzz } from "./fuzz.cases.ts";
import type { OpenStore } from "./kit.ts";
import { describeLive } from "./live.cases.ts";
import { describeMatrix } from "./matrix.cases.ts";
import { describeNodes } from "./nodes.cases.ts";
import { describeProtocol } from "./protocol.cases.ts";
import { describeRuns } from "./protocol-runs.cases.ts";
import { describeSecurity } from "./security.cases.ts";
import { describeSocket } from "./socket.cases.ts";

export function describeAll(open: OpenStore): void {
  describe("protocol", () => describeProtocol(open));
  describe("runs", () => describeRuns(open));
  describe("live", () => describeLive(open));
  describe("socket", () => describeSocket(open));
  describe("nodes", () => describeNodes(open));
  describe("security", () => describeSecurity(open));
  describe("matrix", () => describeMatrix(open));
  describe("attacks", () => describeAttacks(open));
  describe("fuzz", () => describeFuzz(open));
}
