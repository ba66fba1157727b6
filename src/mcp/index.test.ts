import { expect, test, vi } from "vitest";
import { mcpTools } from "./index.ts";

vi.mock("@modelcontextprotocol/client", () => {
  throw new Error("Cannot find package '@modelcontextprotocol/client'");
});

test("without the package, one sentence says what to install", async () => {
  const source = mcpTools({ command: "any" });
  await expect(source.tools()).rejects.toMatchObject({
    code: "dependency_missing",
    message: expect.stringMatching(/^[^.]*npm install @modelcontextprotocol\/client`\.$/),
  });
  await source.close?.();
});
