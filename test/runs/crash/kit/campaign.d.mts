import type { Total } from "../../../crash/kit/campaign.mjs";

export function campaign(options: { name: string; deaths: number; seed: string; lane?: number }): Promise<Total>;
