import { StrictMode, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import "./styles/theme.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/conversation.css";
import "./styles/markdown.css";
import "./styles/composer.css";
import "./styles/panes.css";
import "./styles/overlays.css";
import "./styles/narrow.css";
import { App } from "./app.tsx";
import { createClient } from "./data/bough.ts";
import { FeedProvider } from "./data/feed.tsx";
import { ClientProvider, serverUrl } from "./data/session.tsx";
import { applyTheme, readTheme } from "./settings/theme.ts";
import { TokenForm } from "./settings/token-form.tsx";
import { keepToken, takeToken } from "./token.ts";
import { Toasts } from "./ui/toast.tsx";

function Studio({ given }: { given: string | undefined }) {
  const [token, setToken] = useState(given);
  const client = useMemo(
    () => (token === undefined ? undefined : createClient({ url: serverUrl, token, transport: "websocket" })),
    [token],
  );
  if (!client) {
    const enter = (entered: string, remember: boolean) => {
      keepToken(entered, { remember });
      setToken(entered);
    };
    return <TokenForm refused={undefined} onToken={enter} />;
  }
  return (
    <ClientProvider value={client}>
      <Toasts>
        <FeedProvider>
          <App />
        </FeedProvider>
      </Toasts>
    </ClientProvider>
  );
}

applyTheme(readTheme());
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Studio given={takeToken()} />
  </StrictMode>,
);
