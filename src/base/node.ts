/**
 * A module of Node, where there is one. What also runs elsewhere asks for it by this, not by an import: bundlers for other
 * platforms would stop at that.
 */
export function nodeModule<T>(name: `node:${string}`): T | undefined {
  return globalThis.process?.getBuiltinModule?.(name) as T | undefined;
}
