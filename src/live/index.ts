// Live: who hears of events as they happen.

export { eventMailbox, Hub, type Subscriber } from "./hub.ts";
