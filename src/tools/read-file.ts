import { defineTool, type ToolDefinition } from "./define.ts";
import type { TextPiece } from "./port.ts";
import type { JsonSchemaInput } from "./schema.ts";

/** How much of a text one call gives. */
const most = 40_000;

const input = {
  jsonSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "The id of the file." },
      from: { type: "integer", minimum: 0, description: "The first character to read (default 0)." },
      to: { type: "integer", minimum: 0, description: `The end of what to read; at most ${most} characters are read.` },
    },
    required: ["id"],
  },
} satisfies JsonSchemaInput;

/**
 * A tool with which the model reads the text of stored files: the rest of a long one, and files that a summary lists. Put it into
 * the tools under the name `read_file`.
 */
export function readFileTool(): ToolDefinition<typeof input, Promise<TextPiece>> {
  return defineTool<typeof input, Promise<TextPiece>>({
    description: "Reads the text of a file of this conversation, by its id; of a long one, a piece of it.",
    input,
    effect: "read",
    async execute(given, { content }) {
      const { id, from = 0, to } = given as { id: string; from?: number; to?: number };
      const piece = await content.text(id, { from, to: Math.min(to ?? Number.POSITIVE_INFINITY, from + most) });
      return piece;
    },
  });
}
