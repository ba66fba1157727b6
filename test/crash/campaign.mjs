// Kills a writing process again and again and shows that nothing it acknowledged is lost.

import { campaign } from "./kit/campaign.mjs";
import { runInLanes } from "./kit/lanes.mjs";

await runInLanes({
  command: "npm run test:crash",
  kills: 1000,
  same: "does the same work and kills after the same times",
  campaign,
});
