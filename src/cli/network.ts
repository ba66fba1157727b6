// Addresses: which ones belong to this machine, and at which a server can be reached.

import { hostname, networkInterfaces } from "node:os";

export function isLoopback(host: string): boolean {
  return ["127.0.0.1", "::1", "localhost"].includes(host);
}

/** Whether it means all addresses of the machine. */
export function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** The host names that a server listening there answers to. Names of a proxy have to be configured. */
export function ownNames(host: string): string[] {
  const outside = isWildcard(host) ? [hostname(), ...externalAddresses()] : [host];
  return ["localhost", "127.0.0.1", "[::1]", ...outside.map(inUrl)];
}

/** The URLs at which the server can be reached, starting with that for this machine. */
export function reachableUrls(host: string, port: number): string[] {
  if (!isWildcard(host)) return [`http://${inUrl(host)}:${port}`];
  const local = host === "::" ? "::1" : "127.0.0.1";
  const outside = externalAddresses().filter((address) => host === "::" || !address.includes(":"));
  return [local, ...outside].map((address) => `http://${inUrl(address)}:${port}`);
}

/** Link-local addresses are ambiguous without their interface. */
function externalAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ internal, address }) => !internal && !/^fe80:/i.test(address)).map(({ address }) => address);
}

function inUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
