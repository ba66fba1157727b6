import type { Http } from "./http.ts";

const largestPage = 1000;

/** The whole of a list: asks for page after page until there is no more. */
export async function allPages<Item>(
  http: Http,
  route: string,
  name: string,
  query: Readonly<Record<string, string | undefined>> = {},
): Promise<readonly Item[]> {
  const found: Item[] = [];
  let cursor: string | undefined;
  do {
    const options = { query: { limit: largestPage, ...query, cursor } };
    const page = await http.json<Record<string, unknown>>("GET", route, options);
    for (const item of page[name] as Item[]) found.push(item);
    cursor = page.cursor as string | undefined;
  } while (cursor !== undefined);
  return found;
}
