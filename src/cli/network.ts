// Addresses: which are this machine's own, and by which a server is reached.

import { hostname, networkInterfaces } from "node:os";

export function isLoopback(host: string): boolean {
  return ["127.0.0.1", "::1", "localhost"].includes(host);
}

/** Whether it stands for all addresses of the machine. */
export function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** The host names under which a server that listens there may be asked for. Behind a proxy it has others, to be configured. */
export function ownNames(host: string): string[] {
  const outside = isWildcard(host) ? [hostname(), ...externalAddresses()] : [host];
  return ["localhost", "127.0.0.1", "[::1]", ...outside.map(inUrl)];
}

/** Where it is reached: from this machine first. */
export function reachableUrls(host: string, port: number): string[] {
  if (!isWildcard(host)) return [`http://${inUrl(host)}:${port}`];
  const local = host === "::" ? "::1" : "127.0.0.1";
  const outside = externalAddresses().filter((address) => host === "::" || !address.includes(":"));
  return [local, ...outside].map((address) => `http://${inUrl(address)}:${port}`);
}

/** Link-local addresses name no machine without their interface. */
function externalAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ internal, address }) => !internal && !/^fe80:/i.test(address)).map(({ address }) => address);
}

function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
