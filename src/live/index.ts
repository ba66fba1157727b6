// Live: delivers events as they happen.

export { eventMailbox, Hub, type Subscriber } from "./hub.ts";
export { LiveReceiver } from "./receiver.ts";
export { isDraftEvent, RunningMessages } from "./running-messages.ts";
export { LiveSender } from "./sender.ts";
