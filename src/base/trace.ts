/**
 * Hexadecimal digits that follow from a text. Trace and span ids are made of ids that are there already, so they need no
 * chance of their own, and a turn that is resumed elsewhere keeps its trace.
 */
export function hexOf(text: string, digits: 16 | 32): string {
  let hex = "";
  for (let lane = 1; hex.length < digits; lane++) {
    let hash = Math.imul(lane, 0x9e3779b1) ^ text.length;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) ^ (hash >>> 15);
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hex += ((hash ^ (hash >>> 16)) >>> 0).toString(16).padStart(8, "0");
  }
  return hex;
}
