/** Code of a graph, and the name that JSON has for it. */
export interface Named<Code> {
  readonly name: string;
  readonly code: Code;
}
