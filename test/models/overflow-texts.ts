// How providers say that a prompt is too long.

export const refused = (message: string, extra: object = {}) => Object.assign(new Error(message), extra);

/** Texts as providers send them, with the window that each names. */
export const overflows: readonly (readonly [provider: string, error: unknown, window?: number])[] = [
  ["Anthropic", refused("prompt is too long: 213462 tokens > 200000 maximum", { statusCode: 400 }), 200_000],
  [
    "Anthropic, bytes",
    refused("Request exceeds the maximum size", {
      statusCode: 413,
      data: { type: "error", error: { type: "request_too_large" } },
    }),
  ],
  [
    "Anthropic, output",
    refused("input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length"),
    200_000,
  ],
  [
    "OpenAI",
    refused("This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens."),
    128_000,
  ],
  [
    "OpenAI, code only",
    refused("Bad request", { data: { error: { code: "context_length_exceeded", message: "too much" } } }),
  ],
  [
    "OpenAI Responses",
    refused("Your input exceeds the context window of this model. Please adjust your input and try again."),
  ],
  [
    "Azure",
    refused("This model's maximum context length is 16,385 tokens, however you requested 20,000 tokens"),
    16_385,
  ],
  ["Bedrock", refused("ValidationException: Input is too long for requested model.")],
  [
    "Google",
    refused("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    1_048_576,
  ],
  [
    "Vertex",
    {
      error: {
        code: 400,
        message: "The input token count exceeds the maximum number of tokens allowed 1048576.",
        status: "INVALID_ARGUMENT",
      },
    },
    1_048_576,
  ],
  ["xAI", refused("This model's maximum prompt length is 131072 but the request contains 200001 tokens."), 131_072],
  ["Groq", refused("Please reduce the length of the messages or completion.")],
  [
    "Mistral",
    refused("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    32_768,
  ],
  ["Together", refused("The input is longer than the model's context length")],
  ["llama.cpp", refused("the request exceeds the available context size. try increasing the context size")],
  ["LM Studio", refused("The number of tokens to keep from the initial prompt is greater than the context length")],
  ["Moonshot", refused("Invalid request: Your request exceeded model token limit: 262144"), 262_144],
  ["Qwen", refused("Range of input length should be [1, 30720]"), 30_720],
  [
    "DeepSeek",
    refused("This model's maximum context length is 65536 tokens. However, you requested 70000 tokens"),
    65_536,
  ],
  ["Cohere", refused("too many tokens in the prompt: 140000")],
  [
    "OpenRouter",
    refused("This endpoint's maximum context length is 200000 tokens. However, you requested about 210000 tokens"),
    200_000,
  ],
  ["a stream's part", { type: "error", error: { type: "model_context_window_exceeded", message: "stopped" } }],
  [
    "a retry's wrapper",
    refused("Failed after 3 attempts", { lastError: refused("prompt is too long: 1 > 200000 maximum") }),
    200_000,
  ],
];
