import type { Usage } from "./port.ts";

const keys = [
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "reasoningTokens",
] as const;

/** The sum of two usages; numbers that neither has are omitted. */
export function addUsage(a: Usage, b: Usage): Usage {
  return collect((key) => (a[key] === undefined && b[key] === undefined ? undefined : (a[key] ?? 0) + (b[key] ?? 0)));
}

/** All tokens of a usage together. */
export function tokensOf({ totalTokens, inputTokens = 0, outputTokens = 0 }: Usage): number {
  return totalTokens ?? inputTokens + outputTokens;
}

/** The flat numbers of the specification's nested usage. */
export function flatUsage(usage: unknown): Usage {
  const { inputTokens, outputTokens } = (usage ?? {}) as Record<string, unknown>;
  const [input, output] = [counts(inputTokens), counts(outputTokens)];
  const [total, produced] = [count(input.total), count(output.total)];
  const flat: Record<(typeof keys)[number], number | undefined> = {
    inputTokens: total,
    outputTokens: produced,
    totalTokens: total === undefined && produced === undefined ? undefined : (total ?? 0) + (produced ?? 0),
    cachedInputTokens: count(input.cacheRead),
    cacheWriteTokens: count(input.cacheWrite),
    reasoningTokens: count(output.reasoning),
  };
  return collect((key) => flat[key]);
}

function collect(of: (key: (typeof keys)[number]) => number | undefined): Usage {
  const usage: { -readonly [Key in keyof Usage]: Usage[Key] } = {};
  for (const key of keys) {
    const value = of(key);
    if (value !== undefined) usage[key] = value;
  }
  return usage;
}

/** Some models give one number where the specification has several. */
function counts(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : { total: value };
}

/** The log keeps whole numbers only. */
function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined;
}
