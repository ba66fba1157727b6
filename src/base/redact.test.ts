import { expect, test } from "vitest";
import { redactor, redactSecrets } from "./redact.ts";

const canary = "CANARY0123456789abcdefghijklmnopqrs";

test.each([
  "Incorrect API key provided: sk-CANARYKEY. You can find your API key at https://example.com/keys.",
  `Invalid key sk-ant-api03-${canary}`,
  `Invalid key sk-proj-${canary}_${canary}`,
  `stripe: sk_live_${canary}`,
  "The key AKIACANARY0123456789 is not known.",
  `google AIza${canary}`,
  `github ghp_${canary} and github_pat_${canary}`,
  `slack xoxb-1234-${canary}`,
  `hf_${canary} gsk_${canary} xai-${canary} r8_${canary}`,
  `Authorization: Bearer ${canary}`,
  `authorization: Basic ${canary}`,
  `jwt eyJhbGciOiJIUzI1NiJ9.${canary}.${canary}`,
  `connect ECONNREFUSED postgres://ada:${canary}@db:5432/app`,
  `connect postgres://db/app?password=${canary}`,
  `PGPASSWORD=${canary} psql`,
  `{"apiKey":"${canary}","model":"m"}`,
  `{"client_secret": "${canary}"}`,
  `password: ${canary}`,
  `-----BEGIN RSA PRIVATE KEY-----\n${canary}\n-----END RSA PRIVATE KEY-----`,
  `-----BEGIN PRIVATE KEY-----\n${canary}`,
])("takes the secret out of: %s", (text) => {
  expect(redactSecrets(text)).not.toContain("CANARY");
  expect(redactSecrets(text)).toContain("***");
});

test.each([
  "This model's maximum context length is 8192 tokens; max_tokens: 4096 is too many.",
  "Unexpected token < in JSON at position 0",
  'The tool "search" did not answer within 1000 ms.',
  "401 Unauthorized: bearer authentication is needed; password: must be set",
  "risk-management task-scheduler at https://example.com/a/b?page=2",
  "The key of the map is missing.",
])("leaves as it is: %s", (text) => {
  expect(redactSecrets(text)).toBe(text);
});

// Quadratic work on texts of this size does not end within a test's time.
test.each(["a", "a-", "password", "://", "eyJ", "-----BEGIN PRIVATE KEY-----", "bearer ", "sk-", 'token" '])(
  "comes to an end on a long text of %j",
  (piece) => {
    const text = piece.repeat(Math.ceil(200_000 / piece.length));
    expect(redactSecrets(text).length).toBeLessThanOrEqual(2 * text.length);
  },
);

test("an own function takes the place of the default, false redacts nothing", () => {
  expect(redactor((text) => text.replace("blue", "grey"))("sk-CANARYKEY is blue")).toBe("sk-CANARYKEY is grey");
  expect(redactor(false)("sk-CANARYKEY")).toBe("sk-CANARYKEY");
  expect(redactor(undefined)("sk-CANARYKEY")).toBe("***");
});

test.each([
  () => {
    throw new Error("broken");
  },
  () => undefined as unknown as string,
])("a text that could not be redacted is not told", (broken) => {
  expect(redactor(broken)("sk-CANARYKEY")).toBe("The error message could not be redacted, so it is not shown.");
});
