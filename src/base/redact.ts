// Redaction: takes secrets out of the texts of errors, before they are written, shown or sent to a model. Providers and
// tools quote keys, headers and connection strings in what they throw.
//
//   Redact-1. Only texts of errors pass through here; what models say and tools return is never changed.
//   Redact-2. A redaction never throws: a text that could not be redacted is not told at all.
//   Redact-3. Each pattern looks at a text once; its repetitions are bounded or can't overlap.

import { maskUrlsIn } from "./mask-url.ts";

/** Removes secrets from a text. */
export type Redact = (text: string) => string;

const hidden = "***";

/** Keys whose shape tells what they are. */
const keys = [
  // OpenAI, Anthropic, OpenRouter and others; Stripe.
  /\bsk-[\w-]{8,}/g,
  /\b[prs]k_(?:live|test)_\w{8,}/g,
  // AWS, Google.
  /\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b/g,
  /\bAIza[\w-]{30,}/g,
  /\bya29\.[\w-]{20,}/g,
  // GitHub, GitLab, npm, Slack, SendGrid.
  /\bgh[pousr]_\w{20,}/g,
  /\bgithub_pat_\w{20,}/g,
  /\bglpat-[\w-]{16,}/g,
  /\bnpm_\w{30,}/g,
  /\bxox[abeoprs]-[\w-]{10,}/g,
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/g,
  // Hugging Face, Groq, xAI, Perplexity, Replicate, Fireworks, Tavily.
  /\b(?:hf_|gsk_|xai-|pplx-|r8_|fw_|tvly-)\w{20,}/g,
  // JSON web tokens.
  /\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?/g,
];

const privateKey = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g;
const header = /\b(bearer|basic)(\s+)(?!auth|token|scheme|realm|error|credential)[\w.~+/=-]{8,}/gi;

const secretName =
  "[\\w.-]{0,40}(?:passwd|password|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|session[_-]?token|token(?!s))";
/** `password=…`, `"apiKey": "…"`; and `password: …` where the value is no word of a sentence. */
const assigned = new RegExp(`\\b(${secretName}["']?\\s{0,3}=\\s{0,3}["']?)[^\\s"',;&}]+`, "gi");
const quoted = new RegExp(`(["']${secretName}["']\\s{0,3}:\\s{0,3}["'])[^"']+`, "gi");
const told = new RegExp(`\\b(${secretName}\\s{0,3}:\\s{1,3}["']?)(?=[^\\s"',;]*[\\d_!$%*+/=~])[^\\s"',;]{6,}`, "gi");

/** The default redaction: provider keys, bearer tokens, passwords in URLs and assignments, JSON web tokens, private keys. */
export function redactSecrets(text: string): string {
  let redacted = maskUrlsIn(text.replace(privateKey, hidden));
  for (const pattern of keys) redacted = redacted.replace(pattern, hidden);
  for (const pattern of [assigned, quoted, told]) redacted = redacted.replace(pattern, `$1${hidden}`);
  return redacted.replace(header, `$1$2${hidden}`);
}

/** Resolves the `redact` option: your function, no redaction (`false`), or the default. The result never throws (Redact-2). */
export function redactor(option: Redact | false | undefined): Redact {
  if (option === false) return (text) => text;
  const redact = option ?? redactSecrets;
  return (text) => {
    try {
      const redacted: unknown = redact(text);
      return typeof redacted === "string" ? redacted : unredactable;
    } catch {
      return unredactable;
    }
  };
}

const unredactable = "The error message could not be redacted, so it is not shown.";
