import type { Ground } from "./campaign.mjs";

export class PowerSocket implements Ground {
  env: Record<string, string>;
  makeFolder(): string;
  dispose(): void;
}
