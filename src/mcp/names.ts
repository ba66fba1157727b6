/** Some providers refuse longer names. */
const longest = 64;

/** Maps names to ones that every provider accepts; duplicates get a number. */
export function legalNames(names: readonly string[], prefix: string): Map<string, string> {
  const taken = new Set<string>();
  return new Map(
    names.map((name) => {
      const legal = `${prefix}${name}`.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, longest) || "_";
      let own = legal;
      for (let i = 2; taken.has(own); i++) own = `${legal.slice(0, longest - 1 - String(i).length)}_${i}`;
      taken.add(own);
      return [name, own];
    }),
  );
}
