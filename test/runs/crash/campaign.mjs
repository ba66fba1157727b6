// Kills agents at work again and again and shows that every turn comes to the end it would have come to, and that nothing
// runs twice that must not.

import { runInLanes } from "../../crash/kit/lanes.mjs";
import { campaign } from "./kit/campaign.mjs";

await runInLanes({
  command: "npm run test:run",
  kills: 500,
  same: "plays the same and kills after the same times",
  campaign,
});
