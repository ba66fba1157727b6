// Three processes on one store, whose wall clocks jump while they work: by an hour in either direction, or to double speed.
// It may cost time. Nothing is lost or written twice, no two processes write on one branch, and every turn comes to its end.

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFailed, onTestFinished, test } from "vitest";
import { campaign } from "./kit/campaign.mjs";
import { faketime } from "./kit/clocks.ts";
import { places, presentPlaces } from "./kit/places.ts";

const seed = process.env.BOUGH_SEED ?? String(Date.now());
const ms = Number(process.env.BOUGH_CLOCKS_MS ?? 8_000);
const wanted = (process.env.BOUGH_CLUSTER_STORES ?? "sqlite,postgres,redis").split(",");
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

describe.each(wanted)("three processes on %s whose clocks jump", (name) => {
  const isPresent = faketime !== undefined && presentPlaces().some(([kind]) => kind === name);
  test.skipIf(!isPresent)(
    "lose nothing, never write over each other and bring every turn to its end",
    async () => {
      if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
      console.log(`${name}: seed ${seed}; BOUGH_SEED=${seed} gives the same inputs and the same nemesis`);
      const folder = await mkdtemp(join(tmpdir(), "bough-clocks-"));
      onTestFailed(() => console.log(`What the processes noted is in ${folder}.`));
      const { stop, url } = await places[name]!(folder);
      onTestFinished(() => stop?.());
      const { problems, counts } = await campaign({ url, folder, seed, ms, faketime: faketime! });
      console.log(`${name}: ${JSON.stringify(counts)}`);
      expect(problems).toEqual([]);
      for (const what of ["inputs", "jump"]) expect(counts[what], what).toBeGreaterThan(0);
      await rm(folder, { recursive: true });
    },
    ms + 120_000,
  );
});
