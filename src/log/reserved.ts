// Session ids that begin with this mark are a server's own: its tenants' sessions and stored agents lie under them.

export const reservedMark = "~";

export function isReserved(sessionId: string): boolean {
  return sessionId.startsWith(reservedMark);
}
