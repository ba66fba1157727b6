import { refineType } from "../../base/media-type.ts";
import { sizeText } from "../../base/size-text.ts";
import { moment } from "../../chat/text.ts";
import type { ContentBody } from "../../wire/index.ts";
import { defineCommand, jsonArg } from "../command.ts";
import { contentArgs, contentOptions, withContent } from "../content.ts";
import { printTable, toJson } from "../terminal.ts";

export const contentLs = defineCommand({
  args: { ...contentArgs, ...contentOptions, ...jsonArg },
  examples: ["content ls user-123", "content ls user-123 --url http://127.0.0.1:4600", "content ls user-123 --json"],
  async run({ args, terminal }) {
    const content = await withContent(args, (handle) => handle.list());
    if (args.json) terminal.print(toJson({ content }));
    else if (content.length === 0) terminal.print("The branch has no files.");
    else printTable(terminal, ["ID", "SINCE", "SIZE", "TYPE", "BRANCH", "NAME"], content.map(rowOf));
    return 0;
  },
});

function rowOf({ id, createdAt, size, mediaType, branchId, name = "" }: ContentBody): string[] {
  return [id.slice(0, 12), moment(createdAt), sizeText(size), refineType(mediaType, name), branchId, name];
}
