// Random senders, takers and crashes of three processes on one queue (Q1–Q4): nothing is lost, nothing is doubled.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { TurnWriter } from "../../src/sessions/index.ts";
import { holds, timeoutMs } from "../model/property.ts";
import { deadOwner, type Given, type Place, s, says, withGiven } from "./kit.ts";
import { queueOf, takeAll } from "./queue.cases.ts";

type Op =
  | { do: "send"; sender: number; steer: boolean; again: boolean }
  | { do: "take"; by: number; steer: boolean; end: "commit" | "die" | "fail" }
  | { do: "recover"; by: number }
  | { do: "withdraw"; by: number; n: number }
  | { do: "edit"; by: number; n: number };

const process = fc.nat(2);
const ops: fc.Arbitrary<Op[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constant("send"), sender: process, steer: fc.boolean(), again: fc.boolean() }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        ...{ do: fc.constant("take"), by: process, steer: fc.boolean() },
        end: fc.constantFrom("commit", "commit", "die", "fail"),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("recover"), by: process }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("withdraw"), by: process, n: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("edit"), by: process, n: fc.nat(9) }) },
  ),
  { maxLength: 30 },
) as fc.Arbitrary<Op[]>;

/** The process that works on a turn in this step. */
function worksAs(op: Op): number | undefined {
  return op.do === "take" || op.do === "recover" ? op.by : undefined;
}

/** Random senders, takers and crashes of three processes; several things at the same moment. */
async function playQueue({ sessions, other }: Given, steps: readonly Op[]): Promise<void> {
  await sessions.createSession("s");
  const dying = await other({ owner: deadOwner() });
  const all = [sessions, await other(), dying];
  const sent: { id: string; sender: number }[] = [];
  const withdrawn = new Set<string>();
  const finish = async (turn: TurnWriter | undefined, step: Op & { do: "take" }) => {
    if (!turn) return;
    if (step.steer) await turn.steer();
    if (step.end === "commit") await turn.commit({ messages: [says("assistant", "done")] });
    else if (step.end === "fail") await turn.end({ status: "failed" });
    else await turn.release();
  };
  const busy = ["turn_open", "run_active", "epoch_stale", "nothing_to_resume"];
  const unlessBusy = (error: unknown) => {
    if (!(BoughError.is(error) && busy.includes(error.code))) throw error;
    return undefined;
  };
  const play = async (step: Op): Promise<void> => {
    if (step.do === "send") {
      const known = step.again ? sent.findLast(({ sender }) => sender === step.sender) : undefined;
      const { id } = known ?? { id: `${step.sender}-${sent.length}` };
      if (!known) sent.push({ id, sender: step.sender });
      await all[step.sender]!.queueInput(s, id, { inputId: id, when: step.steer ? "steer" : "idle" });
    } else if (step.do === "take") {
      const turn = await all[step.by]!.takeInputs(s).catch(unlessBusy);
      // A process that is taken for dead loses its branch to the one that resumes the turn.
      await finish(turn, step).catch(unlessBusy);
    } else if (step.do === "recover") {
      const resumed = await all[step.by]!.resumeTurn(s).catch(unlessBusy);
      await resumed?.commit().catch(unlessBusy);
    } else {
      const id = sent[step.n % Math.max(1, sent.length)]?.id;
      if (id === undefined) return;
      const closed = (error: unknown) => {
        if (!BoughError.is(error, "input_closed") && !BoughError.is(error, "input_not_found")) throw error;
        return undefined;
      };
      if (step.do === "edit") await all[step.by]!.editInput(s, id, { input: `${id} edited` }).catch(closed);
      else if (await all[step.by]!.withdrawInput(s, id).catch(closed)) withdrawn.add(id);
    }
  };
  // Two at a time, so that they race. What one sender sends is in its order.
  for (let i = 0; i < steps.length; i += 2) {
    const [first, second] = [steps[i]!, steps[i + 1]];
    const isSameSender = first.do === "send" && second?.do === "send" && first.sender === second.sender;
    // No process resumes a turn that it works on itself, though the claim of one that is taken for dead would allow it.
    const isSameWorker = worksAs(first) !== undefined && second !== undefined && worksAs(first) === worksAs(second);
    if (isSameSender || isSameWorker || !second) {
      await play(first);
      if (second) await play(second);
    } else await Promise.all([play(first), play(second)]);
  }
  // What is left is taken by the last process.
  await (await sessions.resumeTurn(s).catch(unlessBusy))?.commit();
  await takeAll(sessions);
  const inputIds = (await sessions.loadBranch(s)).messages.flatMap(({ inputId }) => inputId ?? []);
  const expected = sent.filter(({ id }) => !withdrawn.has(id));
  // Nothing is lost, nothing is doubled.
  expect([...inputIds].sort()).toEqual(expected.map(({ id }) => id).sort());
  expect(await queueOf(sessions)).toEqual([]);
}

export function queueProperties(place: Place, runs: number): void {
  describe("whatever happens to a queue", () => {
    test(
      "every input is taken once or withdrawn once, by whichever of several processes",
      () =>
        holds(
          fc.asyncProperty(ops, (steps) => withGiven(place, (given) => playQueue(given, steps))),
          runs,
        ),
      timeoutMs,
    );

    test(
      "what one sender sends begins turns in its order",
      () =>
        holds(
          fc.asyncProperty(ops, (steps) =>
            withGiven(place, async (given) => {
              // Those that steer may overtake those that wait for a turn; an edit or a withdrawal changes no order.
              await playQueue(
                given,
                steps.map((step) => (step.do === "send" ? { ...step, steer: false } : step)),
              );
              const { messages } = await given.sessions.loadBranch(s);
              for (const sender of [0, 1, 2]) {
                const own = messages.flatMap(({ inputId }) => (inputId?.startsWith(`${sender}-`) ? [inputId] : []));
                const numbers = own.map((id) => Number(id.split("-")[1]));
                expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
              }
            }),
          ),
          Math.ceil(runs / 2),
        ),
      timeoutMs,
    );
  });
}
