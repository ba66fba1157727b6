// Makes docs/kill-9.svg: the program of the README's "Killed, and resumed", really run, really killed and run again.
//   node scripts/kill-picture.mjs            writes the picture (needs a build)
//   node scripts/kill-picture.mjs --check    fails when the picture shows something else than a run does

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const root = join(import.meta.dirname, "..");
const picture = join(root, "docs/kill-9.svg");

/** The program under the README's heading. */
function readProgram() {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [, code] = /## Killed, and resumed[\s\S]*?```js run\n([\s\S]*?)```/.exec(readme) ?? [];
  if (code === undefined) throw new Error('README.md has no program under "Killed, and resumed".');
  return code;
}

/** Runs the program; with `killAfter`, until a moment after it prints that line. Gives the lines it printed. */
async function runProgram(folder, killAfter) {
  const child = spawn(process.execPath, ["trip.mjs"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  const lines = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (line === killAfter) setTimeout(() => child.kill("SIGKILL"), 400);
  }
  const { code, signal } = await ended;
  if (killAfter === undefined ? code !== 0 : signal !== "SIGKILL") throw new Error(`The program ended with ${code}.`);
  return lines;
}

async function record() {
  const folder = mkdtempSync(join(tmpdir(), "bough-kill-"));
  try {
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "trip.mjs"), readProgram());
    const before = await runProgram(folder, "booked the train");
    const after = await runProgram(folder);
    return [
      { kind: "typed", text: "node trip.mjs" },
      ...before.map((text) => ({ kind: "printed", text })),
      { kind: "killed", text: "kill -9" },
      { kind: "typed", text: "node trip.mjs" },
      ...after.map((text) => ({ kind: "printed", text })),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const colours = { typed: "#e6edf3", printed: "#9fb3c8", killed: "#ff7b72", prompt: "#7ee787" };
const lineHeight = 24;
const margin = 24;

function escapeText(text) {
  return text.replace(/[&<>]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[character]);
}

function drawLine({ kind, text }, i) {
  const y = 64 + i * lineHeight;
  const prompt = kind === "typed" ? `<tspan fill="${colours.prompt}">$ </tspan>` : "";
  const shown = kind === "killed" ? `⚡ ${text}` : text;
  const weight = kind === "killed" ? ' font-weight="bold"' : "";
  return `  <text x="${margin}" y="${y}" fill="${colours[kind]}"${weight}>${prompt}${escapeText(shown)}</text>`;
}

function draw(lines) {
  const height = 64 + lines.length * lineHeight;
  const dots = ["#ff5f57", "#febc2e", "#28c840"].map(
    (fill, i) => `  <circle cx="${margin + 4 + i * 18}" cy="24" r="6" fill="${fill}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="${height}" viewBox="0 0 640 ${height}" role="img" aria-label="An agent is killed in the middle of a turn and resumes it">
  <rect width="640" height="${height}" rx="10" fill="#0d1117"/>
${dots.join("\n")}
  <g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="15" xml:space="preserve">
${lines.map(drawLine).join("\n")}
  </g>
</svg>
`;
}

const drawn = draw(await record());
if (process.argv.includes("--check")) {
  if (readFileSync(picture, "utf8") !== drawn) {
    console.error(
      "docs/kill-9.svg is not what a run shows. Write it again: npm run build && node scripts/kill-picture.mjs",
    );
    process.exitCode = 1;
  }
} else {
  writeFileSync(picture, drawn);
  console.log("docs/kill-9.svg is written.");
}
