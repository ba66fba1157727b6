// Without a token nothing can be shown: it is asked for, not explained.

import { type FormEvent, useState } from "react";
import { createClient } from "../data/bough.ts";
import { serverUrl } from "../data/session.tsx";
import { Button } from "../ui/button.tsx";
import { Mark } from "../ui/icon.tsx";
import { sentenceOf } from "../ui/toast.tsx";

export function TokenForm({
  refused,
  onToken,
}: {
  refused: string | undefined;
  onToken: (token: string, remember: boolean) => void;
}) {
  const [error, setError] = useState(refused);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const token = String(form.get("token")).trim();
    setBusy(true);
    try {
      await createClient({ url: serverUrl, token }).listAgents();
      onToken(token, form.get("remember") !== null);
    } catch (failure) {
      setError(sentenceOf(failure));
    }
    setBusy(false);
  };
  return (
    <main className="token-form">
      <h1>
        <Mark /> Bough Studio
      </h1>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Token
          <input name="token" type="password" autoComplete="off" required minLength={1} />
        </label>
        <p className="quiet">
          The server keeps it in .bough/token-{location.port || "PORT"}, in the directory where it was started.
        </p>
        <label className="check">
          <input type="checkbox" name="remember" />
          Remember it in this browser
        </label>
        {error !== undefined && <p className="failure">{error}</p>}
        <Button kind="solid" type="submit" disabled={isBusy}>
          Open
        </Button>
      </form>
    </main>
  );
}
