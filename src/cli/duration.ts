import { misuse } from "./command.ts";

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** "30d" in milliseconds. */
export function duration(text: string, option: string): number {
  const match = /^(\d{1,6})([smhdw])$/.exec(text);
  if (!match) throw misuse(`--${option} must be a number followed by s, m, h, d or w, such as 30d, not "${text}".`);
  return Number(match[1]) * units[match[2] as keyof typeof units];
}
