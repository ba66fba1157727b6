// The token: taken from the address once, kept for this tab (or this browser, when asked to), and never shown again.

const key = "bough.token";

/** Takes `#token=…` out of the address, so that it is neither bookmarked nor shared. */
export function takeToken(): string | undefined {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    history.replaceState(null, "", `${location.pathname}#/`);
    keepToken(given, { remember: localStorage.getItem(key) !== null });
  }
  return given ?? sessionStorage.getItem(key) ?? localStorage.getItem(key) ?? undefined;
}

export function keepToken(token: string, { remember }: { remember: boolean }): void {
  sessionStorage.setItem(key, token);
  if (remember) localStorage.setItem(key, token);
  else localStorage.removeItem(key);
}

export function forgetToken(): void {
  sessionStorage.removeItem(key);
  localStorage.removeItem(key);
}
