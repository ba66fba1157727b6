import { useState } from "react";
import { forgetToken } from "../token.ts";
import { Button } from "../ui/button.tsx";
import { KeyTable } from "./keys-help.tsx";
import { applyTheme, readTheme, type Theme } from "./theme.ts";

const themes: Readonly<Record<Theme, string>> = { system: "As the system", light: "Light", dark: "Dark" };

export function Settings() {
  const [theme, setTheme] = useState(readTheme);
  return (
    <main className="page" aria-label="Settings">
      <h1>Settings</h1>
      <fieldset>
        <legend>Colours</legend>
        {(Object.keys(themes) as Theme[]).map((each) => (
          <label key={each} className="check">
            <input
              type="radio"
              name="theme"
              checked={theme === each}
              onChange={() => {
                setTheme(each);
                applyTheme(each);
              }}
            />
            {themes[each]}
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>Token</legend>
        <p className="quiet">It is kept for this tab, and for this browser only if you asked for that.</p>
        <Button
          onClick={() => {
            forgetToken();
            location.reload();
          }}
        >
          Forget the token
        </Button>
      </fieldset>
      <h2>Keys</h2>
      <KeyTable />
    </main>
  );
}
