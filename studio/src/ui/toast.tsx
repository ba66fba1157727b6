// Notes that come and go: what was done, with a way back, or why it was not.

import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { Button, IconButton } from "./button.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isFailure: boolean;
  readonly action?: { readonly label: string; readonly onClick: () => void };
}

export interface Toaster {
  say(text: string, action?: Toast["action"]): void;
  fail(error: unknown): void;
  /** Runs what a person asked for; what it throws is told. */
  attempt<T>(work: () => Promise<T>): Promise<T | undefined>;
}

const ToasterContext = createContext<Toaster | undefined>(undefined);
const shownMs = 8000;
let last = 0;

export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const drop = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const toaster = useMemo<Toaster>(() => {
    const show = (toast: Omit<Toast, "id">) => {
      const id = ++last;
      setToasts((all) => [...all.slice(-2), { id, ...toast }]);
      setTimeout(() => drop(id), shownMs);
    };
    const fail = (error: unknown) => show({ text: sentenceOf(error), isFailure: true });
    return {
      say: (text, action) => show({ text, isFailure: false, ...(action && { action }) }),
      fail,
      attempt: async (work) => {
        try {
          return await work();
        } catch (error) {
          fail(error);
          return undefined;
        }
      },
    };
  }, [drop]);
  return (
    <ToasterContext.Provider value={toaster}>
      {children}
      <div className="toasts" aria-live="polite">
        {toasts.map(({ id, text, isFailure, action }) => (
          <div key={id} className={isFailure ? "toast bad" : "toast"}>
            <span>{text}</span>
            {action && (
              <Button
                onClick={() => {
                  drop(id);
                  action.onClick();
                }}
              >
                {action.label}
              </Button>
            )}
            <IconButton icon="close" label="Dismiss" onClick={() => drop(id)} />
          </div>
        ))}
      </div>
    </ToasterContext.Provider>
  );
}

export function useToaster(): Toaster {
  const toaster = useContext(ToasterContext);
  if (!toaster) throw new Error("There are no toasts outside of the app.");
  return toaster;
}

export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
