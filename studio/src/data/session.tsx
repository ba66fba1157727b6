// Who talks to the server: the client, handed down to everything that is drawn.

import { createContext, useContext } from "react";
import type { Client } from "./bough.ts";

/** The server is below the page: a prefix in front of it is a prefix here. */
export const serverUrl = new URL(".", location.href).href.replace(/\/$/, "");

const ClientContext = createContext<Client | undefined>(undefined);
export const ClientProvider = ClientContext.Provider;

export function useClient(): Client {
  const client = useContext(ClientContext);
  if (!client) throw new Error("There is no client outside of the app.");
  return client;
}
