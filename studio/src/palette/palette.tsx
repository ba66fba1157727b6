// Find or do: one box for sessions, branches, places and actions.

import { useMemo, useState } from "react";
import { Dialog } from "../ui/dialog.tsx";

export interface Command {
  readonly label: string;
  readonly about?: string;
  readonly keys?: string;
  readonly run: () => void;
}

const shown = 12;

interface PaletteProps {
  readonly label?: string;
  readonly commands: readonly Command[];
  readonly onClose: () => void;
}

export function Palette({ label = "Find or do", commands, onClose }: PaletteProps) {
  const [text, setText] = useState("");
  const [chosen, choose] = useState(0);
  const found = useMemo(() => rank(commands, text).slice(0, shown), [commands, text]);
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.run();
  };
  return (
    <Dialog label={label} onClose={onClose}>
      <div className="palette">
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={found[chosen] ? `command-${chosen}` : undefined}
          aria-label={label}
          placeholder="A session, a branch, a command"
          autoFocus
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            choose(0);
          }}
          onKeyDown={(event) => {
            const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
            if (by !== 0) {
              event.preventDefault();
              choose((now) => Math.max(0, Math.min(found.length - 1, now + by)));
            }
            if (event.key === "Enter") run(found[chosen]);
          }}
        />
        <div id="palette-list" role="listbox" aria-label="Found">
          {found.map((command, i) => (
            <div
              key={`${i} ${command.label}`}
              id={`command-${i}`}
              role="option"
              tabIndex={-1}
              aria-selected={i === chosen}
              className={i === chosen ? "row here" : "row"}
              onClick={() => run(command)}
              onKeyDown={(event) => event.key === "Enter" && run(command)}
            >
              <span className="one-line">{command.label}</span>
              <span className="quiet">{command.keys ? <kbd>{command.keys}</kbd> : command.about}</span>
            </div>
          ))}
          {found.length === 0 && <p className="quiet pad">Nothing is called that.</p>}
        </div>
      </div>
    </Dialog>
  );
}

/** Words in order, those at the beginning first. */
function rank(commands: readonly Command[], text: string): readonly Command[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return commands;
  return commands
    .map((command) => ({ command, at: `${command.label} ${command.about ?? ""}`.toLowerCase().indexOf(wanted) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at)
    .map(({ command }) => command);
}
