// A deterministic model that follows a script: for tests, and for demos without a key. It calls no real model.

export {
  type Script,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  scriptedModel,
} from "./scripted-model.ts";
