// Turns as an agent plays them: input, model calls, tools in parallel, and every way to close.

/** Mostly short, sometimes longer than a write buffer, rarely so long that a segment of the projection is cut. */
export function randomText(random) {
  const length = random.weighted([
    [90, 10 + random.int(150)],
    [9, 2_000 + random.int(20_000)],
    [1, 300_000 + random.int(300_000)],
  ]);
  const word = `${random.pick(["oak", "beech", "birch", "ἐλάτη", "柳", "🌲"])}${random.int(1e6)} `;
  return word.repeat(Math.ceil(length / word.length));
}

export async function wholeTurn(work, random) {
  const ref = refOf(await work.branch(random, { growing: true }));
  const messages = [
    { role: "user", content: randomText(random) },
    { role: "assistant", content: randomText(random) },
  ];
  const { facts } = await work.sessions.appendTurn(ref, messages, { ...(random.chance(0.3) && randomState(random)) });
  work.tell(ref, facts);
}

export async function playTurn(work, random) {
  const ref = refOf(await work.branch(random, { growing: true }));
  const turn = await work.sessions.beginTurn(ref, randomText(random));
  await goOn(work, random, turn);
}

export async function resumeTurn(work, random) {
  const ref = refOf(await work.branch(random));
  await goOn(work, random, await work.sessions.resumeTurn(ref));
}

async function goOn(work, random, turn) {
  for (let left = random.int(4); left > 0; left--) await iterate(work, random, turn);
  if (random.chance(0.1)) await turn.renew();
  if (random.chance(0.03)) await work.sessions.saveCheckpoint(turn.ref, { source: "loop" });
  await random.weighted(closes)(work, random, turn);
}

async function iterate(work, random, turn) {
  const calls = Array.from({ length: random.int(5) }, (_, i) => ({
    type: "tool-call",
    toolCallId: work.ids.next(),
    toolName: `tool${i}`,
    input: { text: randomText(random).slice(0, 40) },
  }));
  const content = [{ type: "text", text: randomText(random) }, ...calls];
  const asked = { role: "assistant", content };
  work.tell(turn.ref, await turn.add(asked, ...(random.chance(0.1) ? [{ role: "user", content: "By the way" }] : [])));
  // A tool that never answers leaves its call dangling; the turn's end has to answer it.
  const answered = calls.filter(() => random.chance(0.9));
  await Promise.all(
    answered.map(async ({ toolCallId: callId, toolName }) => {
      const output = { type: "text", value: randomText(random) };
      work.tell(turn.ref, [await turn.toolReturned({ callId, toolName, output })]);
    }),
  );
}

const closes = [
  [55, commit],
  [8, stageAndSave],
  [3, stage],
  [10, end],
  [10, (_work, _random, turn) => turn.release()],
  // Left as it is, and held, until the process dies.
  [1, () => {}],
];

async function commit(work, random, turn) {
  const messages = random.chance(0.8) ? [{ role: "assistant", content: randomText(random) }] : [];
  work.tell(turn.ref, await turn.commit({ messages, ...(random.chance(0.4) && randomState(random)), iterations: 1 }));
}

async function stage(work, random, turn) {
  const messages = [{ role: "assistant", content: randomText(random) }];
  work.tell(turn.ref, await turn.stage({ messages, ...randomState(random) }));
}

async function stageAndSave(work, random, turn) {
  const { sessionId, branchId } = turn.ref;
  const session = await work.sessions.getSession(sessionId);
  await stage(work, random, turn);
  const branch = { sessionId, id: branchId };
  await work.sessions.saveSessionAndBranch({ ...session, state: { ...session.state, saved: turn.turnId } }, branch);
}

async function end(work, random, turn) {
  const messages = random.chance(0.5) ? [{ role: "assistant", content: randomText(random), partial: true }] : [];
  const status = random.pick(["interrupted", "failed"]);
  work.tell(turn.ref, await turn.end({ status, messages, ...(status === "failed" && { error: { message: "No" } }) }));
}

function randomState(random) {
  return { state: { [`key${random.int(4)}`]: random.chance(0.2) ? null : random.int(1e6) } };
}

function refOf({ sessionId, branchId }) {
  return { sessionId, branchId };
}
