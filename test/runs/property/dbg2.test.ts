import { test } from "vitest";
import { World, ref } from "./world.ts";
import { live } from "./life.ts";
test("x", async () => {
  const story:any = {"batches":[{"failures":[],"calls":[{"tool":"asking","outcome":"ok","ticks":0,"answer":"approve","again":"deny"}]}],"lives":[],"pendingWrites":true,"parallelTools":8};
  const w = await World.of(story);
  const l = await live(w, {entry:"run",questions:"park",listens:true,answersFrom:"run",end:"none",after:0,host:"here"} as any, 0, true);
  console.log(w.problems, w.facts.map(f=>JSON.stringify(f).slice(0,200)).join("\n"), l!.result!.status);
});
