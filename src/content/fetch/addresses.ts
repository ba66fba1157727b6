// Which web addresses may be fetched for somebody: what the address says, and where its name leads.
//   Addresses-1. A name is resolved once, and the connection goes to what was checked: a second answer could be another one.
//   Addresses-2. Every address of a name has to be public. One that is not is reason enough to think that somebody is trying.

import { BoughError } from "../../base/errors.ts";

/** An address that a name leads to. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

const localNames = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|arpa|onion|test|invalid|example)$/;

/** The URL, if it is one that may be fetched by these rules as far as it can be told without the network. */
export function checkUrl(text: string, hosts: readonly string[]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "https:") throw refused("its address does not begin with https");
  if (url.username !== "" || url.password !== "") throw refused("its address has a user name");
  if (url.port !== "") throw refused("its address has a port");
  const { hostname } = url;
  // The parser has made ordinary addresses of numbers in any spelling.
  if (hostname.startsWith("[") || /^[\d.]+$/.test(hostname))
    throw refused("its address has a number in place of a name");
  const isName = /^([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)+[a-z]([a-z0-9-]*[a-z0-9])$/.test(hostname);
  if (!isName || hostname.length > 253 || localNames.test(hostname)) throw refused("its address has no public name");
  if (!hosts.some((host) => isHost(host, hostname))) throw new NotListed();
  return url;
}

/** The host is in no rule: the address is passed on as it is. */
export class NotListed extends Error {}

/** `example.com`, `*.example.com` for names below it, or `*`. */
function isHost(rule: string, hostname: string): boolean {
  if (rule === "*") return true;
  return rule.startsWith("*.") ? hostname.endsWith(rule.slice(1)) : hostname === rule;
}

/** The address to connect to. Throws unless every one is public (Addresses-2). */
export async function checkAddresses(found: readonly ResolvedAddress[]): Promise<ResolvedAddress> {
  const isPublic = await publicTest();
  const [first] = found;
  if (!first) throw refused("its name leads nowhere");
  if (found.every(({ address }) => isPublic(address))) return first;
  throw refused("its name leads to an address that is not public");
}

// Named by a variable: what is bundled for a platform without Node fetches nothing, and must not ask for the package.
const addressPackage: string = "ipaddr.js";

/** Whether an address is one of the public internet. */
export async function publicTest(): Promise<(address: string) => boolean> {
  const loading: Promise<{ default: typeof import("ipaddr.js") }> = import(addressPackage);
  const { default: ipaddr } = await loading.catch((cause: unknown) => {
    const sentence = "Fetching web addresses needs the package ipaddr.js: npm install ipaddr.js";
    throw new BoughError("dependency_missing", sentence, { cause });
  });
  const global = ipaddr.IPv6.parseCIDR("2000::/3");
  return (text) => {
    // A zone is for addresses of the link alone.
    if (text.includes("%") || !ipaddr.isValid(text)) return false;
    const address = ipaddr.process(text);
    if (address.range() !== "unicast") return false;
    return address.kind() === "ipv4" || address.match(global);
  };
}

export function refused(why: string): BoughError {
  return new BoughError("invalid_argument", `The file was not fetched: ${why}.`);
}
