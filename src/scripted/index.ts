// A model that says what a script says: for tests, and for demos without a key. It is no model.

export {
  type Script,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  scriptedModel,
} from "./scripted-model.ts";
