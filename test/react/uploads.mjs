// A page that stores what its visitor chooses, and shows how far each file is.

import { createClient } from "bough/client";
import { useBranch } from "bough/react";
import { createElement, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";

const { url, token } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const client = createClient({ url, token, agentId: "helper" });
window.progress = [];

function Files() {
  const { status, upload, uploads, submit, messages, error } = useBranch(client, "s");
  const [stored, setStored] = useState([]);
  for (const { name, sent, size } of uploads) window.progress.push([name, sent, size]);
  const choose = ({ target }) => {
    for (const file of target.files) {
      upload(file).then(
        ({ uri }) => setStored((before) => [...before, uri]),
        ({ name }) => setStored((before) => [...before, name]),
      );
    }
  };
  const cancelAll = () => {
    for (const each of uploads) each.cancel();
  };
  const send = () => submit([{ type: "text", text: "Look." }, ...stored.map((data) => ({ type: "file", data }))]);
  return createElement(
    "main",
    null,
    createElement("p", { id: "status" }, status),
    createElement("p", { id: "pending" }, uploads.map(({ name }) => name).join(" ") || "none"),
    createElement("p", { id: "stored" }, stored.map((each) => each.replace(/[0-9a-f]{64}/, "…")).join(" ")),
    createElement("p", { id: "error" }, error?.name ?? ""),
    createElement(
      "p",
      { id: "said" },
      messages
        .map(({ content }) => (typeof content === "string" ? content : content.map(({ type }) => type).join("+")))
        .join(" "),
    ),
    createElement("input", { type: "file", multiple: true, onChange: choose }),
    createElement("button", { type: "button", onClick: send }, "Send"),
    createElement("button", { type: "button", onClick: cancelAll }, "Cancel"),
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(
  createElement(StrictMode, null, createElement(Files)),
);
