// What was measured, as rows, and the rows as a table.

/**
 * @typedef {object} Row
 * @property {string} what
 * @property {string} measured  what Bough needed, with its unit
 * @property {string} [limit]   what it is compared with
 * @property {number} [ratio]
 * @property {{ max?: number, min?: number }} [target]  where the ratio should lie
 * @property {string} [note]
 * @property {string} [skipped] why nothing was measured
 */

/** @param {Row} row */
export function passes({ ratio, target }) {
  if (ratio === undefined || !target) return undefined;
  return ratio <= (target.max ?? Number.POSITIVE_INFINITY) && ratio >= (target.min ?? 0);
}

export const show = {
  ms: (value) =>
    value < 1 ? `${(value * 1000).toFixed(0)} µs` : value < 100 ? `${value.toFixed(2)} ms` : `${value.toFixed(0)} ms`,
  bytes: (value) =>
    value < 10_000
      ? `${Math.round(value).toLocaleString("en")} B`
      : value < 10_000_000
        ? `${(value / 1000).toFixed(0)} kB`
        : `${(value / 1_000_000).toFixed(1)} MB`,
  rate: (value) => `${Math.round(value).toLocaleString("en")}/s`,
  ratio: (value) => (value >= 100 ? value.toFixed(0) : value >= 0.1 ? value.toFixed(2) : value.toFixed(4)),
};

function targetText(target) {
  if (!target) return "";
  return target.max !== undefined ? `≤ ${target.max}` : `≥ ${target.min}`;
}

const heads = ["what", "measured", "limit", "ratio", "target", ""];

/**
 * A line for each row, what is to be said about it below.
 *
 * @param {{ title: string, rows: Row[] }[]} groups
 */
export function renderTable(groups) {
  const cells = [heads, ...groups.flatMap(({ rows }) => rows.map(cellsOf))];
  const widths = heads.map((_, i) => Math.max(...cells.map((line) => line[i].length)));
  const line = (row) => `  ${row.map((cell, i) => pad(cell, widths[i], i)).join("  ")}`.trimEnd();
  const rule = "─".repeat(widths.reduce((sum, width) => sum + width + 2, 0));
  const remark = ({ note, skipped }) =>
    note || skipped ? [`      ${skipped ? `not measured: ${skipped}` : note}`] : [];
  const body = groups.flatMap(({ title, rows }) => [
    `\n${title}`,
    ...rows.flatMap((row) => [line(cellsOf(row)), ...remark(row)]),
  ]);
  return [line(heads), rule, ...body].join("\n");
}

function pad(cell, width, column) {
  return column === 0 || column === heads.length - 1 ? cell.padEnd(width) : cell.padStart(width);
}

/** @param {Row} row */
function cellsOf(row) {
  const { what, measured = "–", limit = "", ratio, target } = row;
  const pass = passes(row);
  const mark = pass === undefined ? "" : pass ? "✓" : "✗ missed";
  return [what, measured, limit, ratio === undefined ? "" : show.ratio(ratio), targetText(target), mark];
}
