import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Damage, Damaged } from "./damage.ts";
import { lastBatch } from "./scenario.mjs";

const main = "sessions/s/branches/main";
const hex = (crc: number) => crc.toString(16).padStart(8, "0");

/** A line of the log, without its checksum. */
interface Line {
  readonly seq: number;
  readonly more?: number;
  readonly at?: number;
  readonly id?: string;
  readonly header?: object;
  readonly data?: unknown;
}

/** Rewrites the log of "main" with right checksums, as if these lines were what the store had meant to write. */
const rewrite = (change: (lines: Line[]) => Line[]): Damage => {
  return ({ path }) => {
    const log = join(path, main, "events.jsonl");
    const lines = readFileSync(log, "utf8").trimEnd().split("\n");
    let crc = 0;
    const written = change(lines.map(parseLine)).map((line) => {
      const body = bodyOf(line);
      crc = crc32(body, crc);
      return `${body},"crc":"${hex(crc)}"}\n`;
    });
    writeFileSync(log, written.join(""));
    // It is derived from the log.
    rmSync(join(path, main, "branch.json"));
  };
};

function parseLine(text: string): Line {
  const { crc: _, ...line } = JSON.parse(text);
  return line;
}

/** As the store writes it: with a space behind the header, and without the brace at the end. */
function bodyOf({ header, ...line }: Line): string {
  if (!header) return JSON.stringify(line).slice(0, -1);
  const { data, ...start } = line;
  return `${JSON.stringify(start).slice(0, -1)},"header":${JSON.stringify(header)}, "data":${JSON.stringify(data)}`;
}

const remove = (...names: string[]): Damage => {
  return ({ path }) => {
    for (const name of names) rmSync(join(path, name), { recursive: true });
  };
};

const reseal = (name: string, change: (document: Record<string, unknown>) => void): Damage => {
  return ({ path }) => {
    const { crc32: _, ...document } = JSON.parse(readFileSync(join(path, name), "utf8"));
    change(document);
    const body = JSON.stringify(document).slice(0, -1);
    writeFileSync(join(path, name), `${body},"crc32":"${hex(crc32(body))}"}\n`);
  };
};

const numbered = (lines: Line[]): Line[] => lines.map((line, i) => ({ ...line, seq: i }));

/** With one fewer line behind it in its batch; the last one has the time instead. */
const shortened = ({ seq, more, ...rest }: Line, last: Line): Line =>
  more === 1 ? { seq, at: last.at!, ...rest } : { seq, more: more! - 1, ...rest };

export const fileDamages: Record<string, Damaged> = {
  "a lost last batch": {
    damage: rewrite((lines) => lines.slice(0, -lastBatch)),
    seen: /^lost: s\/main: the batch .* is not there/,
  },
  "half a batch": {
    damage: rewrite((lines) => [
      ...lines.slice(0, -lastBatch),
      ...lines.slice(-lastBatch, -1).map((line) => shortened(line, lines.at(-1)!)),
    ]),
    seen: /^half: s\/main: of a batch of 4 only the first 3 are there/,
  },
  "a batch that was cut off while it was written": {
    damage: rewrite((lines) => lines.slice(0, -1)),
    seen: /^lost: s\/main: the batch .* is not there/,
  },
  "a whole batch that is there twice": {
    damage: rewrite((lines) => numbered([...lines, ...lines.slice(-lastBatch)])),
    seen: /^wrong: s\/main: fact \d+ \(e\d+\) is there a second time/,
  },
  "a fact under another number": {
    // The two results of the tools change places.
    damage: rewrite((lines) => numbered([...lines.slice(0, 9), lines[10]!, lines[9]!, ...lines.slice(11)])),
    seen: /^wrong: s\/main: fact e\d+ was told 9, is 10/,
  },
  "a fact with other data": {
    damage: rewrite((lines) => lines.map((line) => JSON.parse(JSON.stringify(line).replace("Done", "Gone")))),
    seen: /^wrong: s\/main: fact \d+ \(e\d+\) has other data/,
  },
  "a bit that turned": {
    damage: ({ path }) => {
      const log = join(path, main, "events.jsonl");
      writeFileSync(log, readFileSync(log, "utf8").replace("Add them up", "Add then up"));
      rmSync(join(path, main, "branch.json"));
    },
    seen: /^broken: /,
  },
  "a lost fork": { damage: remove("sessions/s/branches/fork"), seen: /^lost: branch s\/fork was acknowledged/ },
  "a lost session": { damage: remove("sessions/held"), seen: /^lost: session held was acknowledged/ },
  "a lost session update": {
    damage: ({ path, midway }) =>
      cpSync(join(midway, "sessions/s/session.json"), join(path, "sessions/s/session.json")),
    seen: /^lost: session s: the update to version 2 is not there/,
  },
  "an update that changed another key": {
    damage: reseal("sessions/s/session.json", (document) => {
      document.metadata = { title: "new", more: 1 };
    }),
    seen: /^lost: session s: no order of its updates/,
  },
  "a header that did not follow its facts": {
    damage: rewrite((lines) =>
      lines.map((line) =>
        line.header ? { ...line, header: JSON.parse(JSON.stringify(line.header).replace('"seen"', '"scene"')) } : line,
      ),
    ),
    seen: /^lost: s\/main: the header is/,
  },
  "a lost claim": {
    damage: remove("sessions/held/uncommitted/main.json"),
    seen: /^lost: held\/main: the claim of run e\d+ is gone/,
  },
  "a lost checkpoint": {
    damage: remove(`${main}/checkpoints.jsonl`),
    seen: /^lost: s\/main: checkpoint mark was saved and is not there/,
  },
  "lost content": {
    damage: remove("sessions/s/content.jsonl", "sessions/s/assets"),
    seen: /^lost: s\/main: content [0-9a-f]+ was acknowledged/,
  },
  "an activity that was forgotten": {
    damage: reseal("sessions/s/session.json", (document) => {
      document.activeAt = document.createdAt;
    }),
    seen: /^lost: session s: it was active at/,
  },
};
