import fc from "fast-check";
import { test } from "vitest";
import { checkLife } from "./checks.ts";
import { live } from "./life.ts";
import { stories } from "./story.ts";
import { World } from "./world.ts";

test("x", async () => {
  const last: any = {
    entry: "run",
    questions: "wait",
    listens: true,
    answersFrom: "run",
    end: "none",
    after: 0,
    host: "here",
  };
  let n = 0,
    tl = 0,
    tc = 0;
  const t0 = performance.now();
  const c0 = process.cpuUsage();
  const st: Record<string, number> = {};
  for (const story of fc.sample(stories, { numRuns: Number(process.env.N ?? 60), seed: Number(process.env.S ?? 5) })) {
    n++;
    const w = await World.of(story);
    for (const [i, plan] of [...story.lives, last].entries()) {
      let a = performance.now();
      const l = await live(w, plan, i, i === story.lives.length);
      tl += performance.now() - a;
      a = performance.now();
      if (!l) {
        st.none = (st.none ?? 0) + 1;
        break;
      }
      const k = plan.end + "→" + (l.result?.status ?? "dead");
      st[k] = (st[k] ?? 0) + 1;
      const p = await checkLife(w, l);
      tc += performance.now() - a;
      if (p.length)
        console.log(
          p,
          JSON.stringify(story),
          i,
          l.events.map((e) => e.seq + " " + e.type).join("\n"),
          l.result?.reason,
        );
    }
  }
  console.log(n, performance.now() - t0, tl, tc, process.cpuUsage(c0), st);
}, 100000);
