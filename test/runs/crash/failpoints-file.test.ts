import { failpointCases } from "./failpoints.cases.ts";

failpointCases("file");
