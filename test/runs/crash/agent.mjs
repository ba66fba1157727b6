// The process that is killed: drives an agent through a play. Its parent answers what it asks.
// node agent.mjs '{"store":"file","path":"…","effects":"…","play":[…],"life":1}' with an IPC channel.

import { HostClock, openStoreAt } from "../../crash/kit/stores.mjs";
import { drive } from "./kit/drive.mjs";

const { store: name, path, ...options } = JSON.parse(process.argv[2]);
const waiting = new Map();

process.on("message", ({ id, given }) => {
  waiting.get(id)?.(given);
  waiting.delete(id);
});

function answer({ id, request, callId, kind }) {
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    process.send({ asked: { id, request, callId, kind } });
  });
}

const store = await openStoreAt(name, path, new HostClock());
process.send({ opened: true });
await drive({ ...options, store, answer, onAcked: (callIds) => process.send({ acked: callIds }) });
await store.close();
process.send({ done: true });
process.disconnect();
