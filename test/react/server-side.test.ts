import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { useBranch } from "../../src/react/index.ts";

test("on a server the hook shows that it loads, and asks nobody", () => {
  let asked = 0;
  const fetch = () => Promise.reject(new Error(`asked ${++asked} times`));
  const client = createClient({ url: "http://far", token: "t", fetch });
  function Chat() {
    const { status, messages, streamingText, siblings, connection } = useBranch(client, {
      agentId: "helper",
      sessionId: "s",
    });
    return createElement("p", null, JSON.stringify([status, messages, streamingText, siblings, connection.state]));
  }
  const html = renderToString(createElement(Chat)).replaceAll("&quot;", '"');
  expect(html).toBe('<p>["loading",[],"",[],"idle"]</p>');
  expect(asked).toBe(0);
});
