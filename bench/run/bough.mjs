import { modelV4 } from "./lib/model-v4.mjs";

export * from "./bare.mjs";
