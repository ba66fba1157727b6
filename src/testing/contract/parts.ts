import { describe, expect } from "vitest";
import { type Contract, optionalParts } from "./kit.ts";

export function partsCases(contract: Contract): void {
  describe("optional parts", () => {
    for (const part of optionalParts) {
      const isLeftOut = contract.lacks(part);
      contract.test(`\`${part}\` is ${isLeftOut ? "left out, as declared" : "there"}`, async ({ store }) => {
        const message = `\`lacks\` of the harness must name "${part}" exactly when the ${store.kind} store leaves it out`;
        expect(store[part] === undefined, message).toBe(isLeftOut);
      });
    }
  });
}
