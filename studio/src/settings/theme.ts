// Light, dark, or what the system says: kept for this browser.

export type Theme = "system" | "light" | "dark";

const key = "bough.theme";

export function readTheme(): Theme {
  const kept = localStorage.getItem(key);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") {
    localStorage.removeItem(key);
    document.documentElement.removeAttribute("data-theme");
  } else {
    localStorage.setItem(key, theme);
    document.documentElement.setAttribute("data-theme", theme);
  }
  dispatchEvent(new Event("bough-theme"));
}
