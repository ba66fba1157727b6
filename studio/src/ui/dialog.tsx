// Dialogs: the browser's own, with its focus, its Escape and its backdrop.

import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { Button } from "./button.tsx";

export function Dialog({ label, onClose, children }: { label: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself
    <dialog
      ref={dialog}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      {children}
    </dialog>
  );
}

interface AskProps {
  readonly title: string;
  readonly children?: ReactNode;
  readonly action: string;
  readonly isDangerous?: boolean;
  readonly error?: string | undefined;
  readonly onSubmit: (form: FormData) => void;
  readonly onClose: () => void;
}

/** A dialog with a form, an action and a way out. */
export function Ask({ title, children, action, isDangerous = false, error, onSubmit, onClose }: AskProps) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSubmit(new FormData(event.currentTarget));
  };
  return (
    <Dialog label={title} onClose={onClose}>
      <form className="ask" onSubmit={submit}>
        <h2>{title}</h2>
        {children}
        {error !== undefined && <p className="failure">{error}</p>}
        <div className="actions">
          <Button kind="plain" onClick={onClose}>
            Cancel
          </Button>
          <Button kind={isDangerous ? "danger" : "solid"} type="submit">
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
