// A menu on the browser's popover: it closes by itself, and Escape and clicks elsewhere need no code.

import { type ReactNode, useId, useRef } from "react";
import { Icon } from "./icon.tsx";

export interface MenuItem {
  readonly label: string;
  readonly onClick: () => void;
  readonly isDangerous?: boolean;
  readonly disabled?: boolean;
}

export function Menu({ label, items, children }: { label: string; items: readonly MenuItem[]; children?: ReactNode }) {
  const id = useId();
  const popover = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const place = () => {
    const shown = popover.current;
    const at = button.current?.getBoundingClientRect();
    if (!shown || !at) return;
    shown.style.setProperty("--x", `${Math.max(8, Math.min(at.right - 200, innerWidth - 216))}px`);
    const isLow = at.bottom + shown.offsetHeight + 8 > innerHeight;
    shown.style.setProperty("--y", `${isLow ? Math.max(8, at.top - shown.offsetHeight - 4) : at.bottom + 4}px`);
  };
  return (
    <>
      <button ref={button} type="button" className="icon-button" aria-label={label} title={label} popoverTarget={id}>
        {children ?? <Icon name="more" />}
      </button>
      <div ref={popover} id={id} popover="auto" className="menu" role="menu" onToggle={place}>
        {items.map((item) => (
          <button
            key={item.label}
            type="button"
            role="menuitem"
            className={item.isDangerous ? "danger-text" : undefined}
            disabled={item.disabled}
            onClick={() => {
              popover.current?.hidePopover();
              item.onClick();
            }}
          >
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}
