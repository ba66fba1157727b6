/** What a `Range` header asks for: a part, more than there is, or nothing that is supported (then all is sent). */
export type RequestedRange = { readonly from: number; readonly to: number } | "unsatisfiable" | undefined;

/** Reads a single range of bytes (RFC 9110, 14.2). Several ranges, other units and what is malformed are ignored, as it allows. */
export function readRange(header: string | null, size: number): RequestedRange {
  const found = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  if (!found || (found[1] === "" && found[2] === "")) return undefined;
  if (found[1] === "") {
    const last = Number(found[2]);
    return last === 0 || size === 0 ? "unsatisfiable" : { from: Math.max(0, size - last), to: size };
  }
  const from = Number(found[1]);
  const to = found[2] === "" ? Number.POSITIVE_INFINITY : Number(found[2]) + 1;
  if (to <= from) return undefined;
  return from >= size ? "unsatisfiable" : { from, to: Math.min(to, size) };
}

/** Whether a header such as `If-None-Match` has this entity tag. A weak one is the same bytes, too. */
export function hasTag(header: string | null, tag: string): boolean {
  const tags = (header ?? "").split(",").map((each) => each.trim().replace(/^W\//, ""));
  return tags.includes(tag) || tags.includes("*");
}
