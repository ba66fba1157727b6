import type { QueuedInput } from "../../events/index.ts";
import { messagesOf, type RunInput } from "../../runs/index.ts";
import { type EditInputBody, queuedInputBody } from "../../wire/index.ts";
import type { Exchange } from "../exchange.ts";
import { Refusal } from "../refusal.ts";

export const queueHandlers = {
  async listQueue({ tenant, ref }: Exchange) {
    return { inputs: (await tenant.sessions.listQueue(ref)).map(queuedInputBody) };
  },
  async editInput(exchange: Exchange) {
    const { tenant, ref, body } = exchange;
    const { input, when } = body as EditInputBody;
    const messages = input === undefined ? undefined : messagesOf(input as RunInput);
    const edit = { ...(messages && { input: messages }), ...(when && { when }) };
    return queuedInputBody(await tenant.sessions.editInput(ref, exchange.param("inputId"), edit, changeBy(exchange)));
  },
  async withdrawInput(exchange: Exchange) {
    const { tenant, ref } = exchange;
    await tenant.sessions.withdrawInput(ref, exchange.param("inputId"), changeBy(exchange));
  },
};

/** An input of a user can be changed by that user, and by credentials with scope `admin`. */
function changeBy({ identity: { user, scopes } }: Exchange) {
  const check = ({ by }: QueuedInput) => {
    if (by === undefined || by === user || scopes.includes("admin")) return;
    throw new Refusal("forbidden", "The input was sent by another user.");
  };
  return { check, ...(user !== undefined && { by: user }) };
}
