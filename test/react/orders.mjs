// A page that shows what useBranch tells its onEvent: the orders of a session, by the program's own event.

import { createClient } from "bough/client";
import { defineEvent } from "bough/events";
import { useBranch } from "bough/react";
import { createElement, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

const { url, token } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
const client = createClient({ url, token, agentId: "helper", events: [orderPlaced] });

function Orders() {
  const [totals, setTotals] = useState([]);
  const [factor, setFactor] = useState(1);
  const { status, submit } = useBranch(client, "s", {
    onEvent: (event) => {
      if (event.type === "order.placed") setTotals((before) => [...before, event.data.total * factor]);
    },
  });
  return createElement(
    "main",
    null,
    createElement("p", { id: "status" }, status),
    createElement("p", { id: "totals" }, totals.join(" ")),
    createElement("button", { type: "button", onClick: () => submit("Go") }, "Order"),
    createElement("button", { type: "button", onClick: () => setFactor(10) }, "Times ten"),
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(
  createElement(StrictMode, null, createElement(Orders)),
);
