// From a request to the options of one call, as the provider specification has them: what is sent follows from the request
// alone, so that a request that is made again (provenance.ts) is sent again, byte for byte.

import { hintCache } from "./cache.ts";
import type { ModelRequest, ToolChoice, ToolSpec } from "./port.ts";
import { withReminders } from "./reminders.ts";
import { forSpecification, hasResults } from "./specification.ts";

/** The settings that have the specification's own names. Other settings are not passed on. */
const sameNamed = [
  "temperature",
  "topP",
  "topK",
  "maxOutputTokens",
  "presencePenalty",
  "frequencyPenalty",
  "seed",
  "headers",
] as const;

/** What a model is called with. */
export interface RenderedCall {
  /** The options of the provider specification, without the signal. */
  readonly options: Record<string, unknown>;
  /** Which messages carry a breakpoint for the provider's cache that the user did not put there; -1 is the last tool. */
  readonly marks: readonly number[];
}

/** The request as the provider specification wants it. */
export function renderCall(request: ModelRequest): RenderedCall {
  const { model, toolChoice, settings, responseSchema } = request;
  const {
    prompt,
    tools,
    providerOptions,
    marks = [],
  } = hintCache(request, {
    prompt: forSpecification(request.prompt, model),
    tools: request.tools,
    ...(settings.providerOptions !== undefined && { providerOptions: settings.providerOptions }),
  });
  const options: Record<string, unknown> = { prompt: withReminders(prompt, request) };
  if (providerOptions !== undefined) options.providerOptions = providerOptions;
  for (const key of sameNamed) if (settings[key] !== undefined) options[key] = settings[key];
  if (settings.stop) options.stopSequences = settings.stop;
  if (settings.reasoning && model.specificationVersion === "v4") options.reasoning = settings.reasoning;
  if (responseSchema) options.responseFormat = { type: "json", schema: responseSchema };
  if (tools.length > 0) {
    options.tools = tools;
    // Providers refuse a choice among no tools.
    if (toolChoice) options.toolChoice = specChoice(toolChoice);
  } else if (hasResults(request.prompt)) {
    options.tools = [standIn];
    options.toolChoice = specChoice("none");
  }
  return { options, marks };
}

/** Some providers refuse a conversation that has calls in it when no tool is named; this one can't be called. */
const standIn: ToolSpec = {
  type: "function",
  name: "unavailable",
  description: "Tools can no longer be called.",
  inputSchema: { type: "object", properties: {} },
};

function specChoice(choice: ToolChoice): Record<string, string> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}
