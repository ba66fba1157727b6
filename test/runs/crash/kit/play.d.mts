import type { Play } from "./subject.mjs";

export const fixedPlay: Play;
