// What a campaign prints: its seed, how far it is, the table at the end, and how to replay a failure.

const problemsShown = 50;

/** Begins the report of a campaign; `what` is what is counted: kills, cuts. */
export function start({ seed, what, total }) {
  console.log(`seed ${seed}`);
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  let done = 0;

  /** One more. */
  function step() {
    done++;
    const line = `${done} of ${total} ${what}, ${Math.round(seconds())} s`;
    if (process.stdout.isTTY) process.stdout.write(`\r${line}`);
    else if (done % 500 === 0) console.log(line);
  }

  /** Prints the table of { name, deaths, ackedFacts, problems } and what is wrong; returns the exit code. */
  function finish(parts, again) {
    if (process.stdout.isTTY) process.stdout.write("\n");
    row(["store", what, "acked facts", "lost", "half batches", "other faults"]);
    for (const name of new Set(parts.map((part) => part.name))) row(summary(name, parts));
    console.log(`${seconds().toFixed(1)} s`);
    const problems = parts.flatMap((part) => part.problems.map((problem) => ({ name: part.name, ...problem })));
    if (problems.length === 0) return 0;
    for (const { name, kind, text } of problems.slice(0, problemsShown)) console.error(`${name}: ${kind}: ${text}`);
    if (problems.length > problemsShown) console.error(`… and ${problems.length - problemsShown} more`);
    for (const { evidence } of parts) if (evidence) console.error(`\nEvidence (trace, store): ${evidence}`);
    console.error(`\nTo replay: ${again}`);
    return 1;
  }

  return { step, finish };
}

function summary(name, parts) {
  const own = parts.filter((part) => part.name === name);
  const sum = (key) => own.reduce((total, part) => total + part[key], 0);
  const kinds = own.flatMap((part) => part.problems.map(({ kind }) => kind));
  const lost = kinds.filter((kind) => kind === "lost").length;
  const half = kinds.filter((kind) => kind === "half").length;
  return [name, sum("deaths"), sum("ackedFacts"), lost, half, kinds.length - lost - half];
}

function row(cells) {
  console.log(cells.map((cell, i) => String(cell).padStart(i === 0 ? 7 : 13)).join(""));
}
