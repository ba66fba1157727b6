import type { BranchListBody, BranchSummary } from "../wire/types.ts";
import type { Http } from "./http.ts";

const largestPage = 1000;

/** Asks for page after page until there is no more. */
export async function allBranches(
  http: Http,
  route: string,
  { visibility }: { visibility?: "shown" | "all" } = {},
): Promise<readonly BranchSummary[]> {
  const found: BranchSummary[] = [];
  let cursor: string | undefined;
  do {
    const page = await http.json<BranchListBody>("GET", route, { query: { limit: largestPage, cursor, visibility } });
    for (const branch of page.branches) found.push(branch);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}
