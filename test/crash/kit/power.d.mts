import type { Ground } from "./campaign.mjs";

export class PowerSocket implements Ground {
  makeFolder(): string;
  dispose(): void;
}
