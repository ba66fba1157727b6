// The agent of the kill matrix, the same in every process: its model writes down each call, and what it says depends on the
// prompt alone, so that a process that goes on says what the first would have said.

import { appendFileSync } from "node:fs";

/** The ways to ask, by name. `http` ones are as a client says them. */
export function requests(z) {
  const sum = z.object({ sum: z.number() });
  return {
    plain: {},
    "permission mode": { config: { permissionMode: "deny" } },
    bounds: { config: { tighten: { permissionMode: "deny", limits: { iterations: 5 }, maxOutputTokens: 77 } } },
    settings: { config: { temperature: 0.3, topP: 0.9, topK: 4, seed: 7, stop: ["END"], maxOutputTokens: 99 } },
    "provider options": { config: { providerOptions: { x: { y: [1] } }, headers: { "x-trace": "7" } } },
    instructions: { config: { instructions: "Be another.", addInstructions: "Be brief." } },
    limits: { config: { limits: { iterations: 2, parallelTools: 1 } } },
    "tool choice": { config: { toolChoice: "auto", sendReasoning: "all" } },
    "named model": { config: { model: "fast" } },
    "native output": { output: sum },
    "tool output": { output: { schema: sum, mode: "tool" } },
    union: { output: { union: { total: sum, words: z.object({ text: z.string() }) } } },
    "client tool": {
      config: { tools: { pick: { description: "Picks.", inputSchema: z.object({ of: z.string() }) } } },
    },
    questions: { questions: "deny" },
    "context and identity": {
      context: { plan: "pro" },
      identity: { tenant: "acme", user: "ada", scopes: ["run"] },
      metadata: { from: "matrix" },
    },
  };
}

export const httpRequests = {
  "permission mode": { config: { permissionMode: "deny" } },
  settings: { config: { temperature: 0.3, seed: 7, maxOutputTokens: 50, limits: { iterations: 3 } } },
  output: {
    output: { schema: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] }, mode: "tool" },
  },
  "context and metadata": { context: { plan: "pro" }, metadata: { from: "matrix" } },
};

/** Options of an agent whose model calls are added to the file, one line each. */
export function agentOptions({ defineTool, scriptedModel, z }, callsPath) {
  const reply = (prompt) => {
    const results = prompt.filter(({ role }) => role === "tool").length;
    if (results === 0) {
      const calls = [
        { name: "guarded", input: {} },
        { name: "whoami", input: {} },
      ];
      return { reasoning: "Hm.", text: "First.", calls };
    }
    if (results === 1) return { text: "Then.", calls: [{ name: "whoami", input: {} }] };
    return '{"sum":3}';
  };
  const script = (name) => (prompt) => reply(prompt, name);
  const noted = (name) => {
    const model = scriptedModel(script(name));
    return {
      ...model,
      doStream(call) {
        const { abortSignal: _signal, prompt, ...rest } = call;
        // Ids and times are each run's own; no provider is sent them.
        const said = prompt.map(({ id: _id, createdAt: _at, turnId: _turn, ...message }) => message);
        appendFileSync(callsPath, `${JSON.stringify({ model: name, prompt: said, ...rest })}\n`);
        return model.doStream(call);
      },
    };
  };
  return {
    id: "matrix",
    model: noted("slow"),
    models: { fast: noted("fast") },
    instructions: "You are a test.",
    settings: { frequencyPenalty: 0.1 },
    permissions: { mode: "allow" },
    logger: { warn() {} },
    tools: {
      guarded: defineTool({ input: z.object({}), permission: true, execute: () => "ran" }),
      whoami: defineTool({
        input: z.object({}),
        execute: async (_input, { context, identity, by, metadata, sessionMetadata }) => ({
          context: context ?? null,
          identity,
          by: by ?? null,
          metadata: metadata.from ?? null,
          session: await sessionMetadata(),
        }),
      }),
    },
  };
}
