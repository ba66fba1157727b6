import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";

interface ButtonProps {
  readonly onClick?: () => void;
  readonly children: ReactNode;
  readonly kind?: "solid" | "line" | "plain" | "danger";
  readonly disabled?: boolean;
  readonly type?: "button" | "submit";
  readonly title?: string;
}

export function Button({ kind = "line", type = "button", ...props }: ButtonProps) {
  return <button type={type} className={kind} {...props} />;
}

interface IconButtonProps {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick?: () => void;
  readonly disabled?: boolean;
  readonly text?: string;
}

/** A button with a sign; its label is its name and its tooltip. */
export function IconButton({ icon, label, onClick, disabled = false, text }: IconButtonProps) {
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      title={label}
      onClick={onClick}
      disabled={disabled}
    >
      <Icon name={icon} />
      {text !== undefined && <span>{text}</span>}
    </button>
  );
}
