// From "provider/model" to a model. The provider's package is the user's to install; it is loaded when it is asked for.

import { BoughError } from "../base/errors.ts";
import type { LanguageModel, ModelChoice } from "./port.ts";

interface ProviderPackage {
  readonly name: string;
  /** What the package calls its ready-made provider; a package that renamed it has several. */
  readonly exports: readonly string[];
}

const aiSdk = (name: string, ...exports: string[]): ProviderPackage => ({
  name: `@ai-sdk/${name}`,
  exports: exports.length > 0 ? exports : [name],
});

const providers: Readonly<Record<string, ProviderPackage>> = {
  alibaba: aiSdk("alibaba"),
  "amazon-bedrock": aiSdk("amazon-bedrock", "amazonBedrock", "bedrock"),
  anthropic: aiSdk("anthropic"),
  azure: aiSdk("azure"),
  baseten: aiSdk("baseten"),
  cerebras: aiSdk("cerebras"),
  cohere: aiSdk("cohere"),
  deepinfra: aiSdk("deepinfra"),
  deepseek: aiSdk("deepseek"),
  fireworks: aiSdk("fireworks"),
  gateway: aiSdk("gateway"),
  google: aiSdk("google"),
  "google-vertex": aiSdk("google-vertex", "googleVertex", "vertex"),
  groq: aiSdk("groq"),
  huggingface: aiSdk("huggingface"),
  mistral: aiSdk("mistral"),
  moonshotai: aiSdk("moonshotai"),
  ollama: { name: "ollama-ai-provider-v2", exports: ["ollama"] },
  openai: aiSdk("openai"),
  openrouter: { name: "@openrouter/ai-sdk-provider", exports: ["openrouter"] },
  perplexity: aiSdk("perplexity"),
  togetherai: aiSdk("togetherai"),
  vercel: aiSdk("vercel"),
  xai: aiSdk("xai"),
};

const resolved = new Map<string, Promise<LanguageModel>>();
/** Names come from stored agents, too, so there is no end to them. */
const mostResolved = 256;

/** Resolves a model: an object as it is, a `"provider/model"` string through the provider's package. */
export async function resolveModel(choice: ModelChoice): Promise<LanguageModel> {
  if (typeof choice !== "string") return checkModel(choice, "The model");
  const known = resolved.get(choice);
  if (known) return known;
  const loading = loadModel(choice);
  resolved.set(choice, loading);
  if (resolved.size > mostResolved) resolved.delete(resolved.keys().next().value!);
  // What failed may succeed later: a package can be installed while the process runs.
  loading.catch(() => {
    if (resolved.get(choice) === loading) resolved.delete(choice);
  });
  return loading;
}

async function loadModel(choice: string): Promise<LanguageModel> {
  const slash = choice.indexOf("/");
  const [provider, modelId] = [choice.slice(0, slash), choice.slice(slash + 1)];
  const known = `Providers with a name are ${Object.keys(providers).join(", ")}; for any other, pass its model object.`;
  if (slash <= 0 || modelId === "") {
    throw new BoughError(
      "invalid_argument",
      `A model name must have the form "provider/model", not "${choice}". ${known}`,
      {
        data: { model: choice },
      },
    );
  }
  const entry = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  if (!entry) {
    throw new BoughError("invalid_argument", `Unknown provider "${provider}". ${known}`, {
      data: { model: choice, providers: Object.keys(providers) },
    });
  }
  const loaded = await loadPackage(entry.name, choice);
  const instance = entry.exports.map((name) => loaded[name]).find((value) => value != null) as Provider | undefined;
  const model = instance?.languageModel?.(modelId) ?? (typeof instance === "function" ? instance(modelId) : undefined);
  return checkModel(model, `What ${entry.name} returns for "${choice}"`);
}

type Provider = ((modelId: string) => unknown) & { languageModel?: (modelId: string) => unknown };

async function loadPackage(name: string, choice: string): Promise<Record<string, unknown>> {
  try {
    // The name is a value and the hints say so, or bundlers would demand every provider there is.
    return await import(/* @vite-ignore */ /* webpackIgnore: true */ name);
  } catch (error) {
    // A package that is there but lacks one of its own is another failure, which is passed on unchanged.
    if (!isMissing(error, name)) throw error;
    throw new BoughError("dependency_missing", `The model "${choice}" needs a package: npm install ${name}`, {
      data: { model: choice, package: name },
      cause: error,
    });
  }
}

function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  // Runtimes quote the name in different ways; unquoted it may be part of a path.
  return (
    code === "ERR_MODULE_NOT_FOUND" && [`'${name}'`, `"${name}"`].some((quoted) => String(message).includes(quoted))
  );
}

function checkModel(model: unknown, what: string): LanguageModel {
  const { specificationVersion: version, doStream } = (model ?? {}) as Partial<LanguageModel>;
  if ((version === "v3" || version === "v4") && typeof doStream === "function") return model as LanguageModel;
  const found =
    version === undefined ? "not an AI SDK language model" : `an AI SDK model with specification ${version}`;
  throw new BoughError("invalid_argument", `${what} is ${found}; it must have specification v3 or v4.`, {
    data: version === undefined ? {} : { specificationVersion: version },
  });
}
