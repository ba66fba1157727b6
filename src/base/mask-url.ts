// URLs without their secrets: passwords before the last `@`, values of parameters that hold secrets, and everything behind
// a `#`. Passwords need not be encoded as they should be, so nothing here relies on the URL being a right one.

/** Parameters whose values are not shown: `password`, `sslpassword`, `access_token`, `apiKey` … */
const secretName = /pass|pwd|token|secret|key|credential|signature|\bsig\b|auth/i;

/** A URL as it may be shown. Of one that can't be parsed only the scheme is shown. */
export function maskUrl(url: string): string {
  const [, scheme = "", rest] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(url) ?? [];
  if (rest === undefined) return /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0].concat("…") ?? "…";
  const masked = scheme + maskRest(rest).replace(/#.*$/s, "#…");
  return URL.canParse(masked) ? masked : `${scheme}…`;
}

/** Every URL in a text without its secrets; the rest of the text stays. */
export function maskUrlsIn(text: string): string {
  if (!text.includes("://")) return text;
  return text.replace(/([a-z][a-z0-9+.-]{0,30}:\/\/)([^\s"'`<>]+)/gi, (_, scheme: string, rest: string) => {
    return scheme + maskRest(rest).replace(/([#&]token=)[^&]+/gi, "$1***");
  });
}

/** What follows `://`. */
function maskRest(rest: string): string {
  const at = rest.lastIndexOf("@");
  const userInfo = at === -1 ? "" : rest.slice(0, at);
  const colon = userInfo.indexOf(":");
  const shown = colon === -1 ? userInfo : `${userInfo.slice(0, colon)}:***`;
  return (at === -1 ? "" : `${shown}@`) + maskParameters(rest.slice(at + 1));
}

function maskParameters(text: string): string {
  return text.replace(/([?&;])([^=&;#]{1,100})=([^&;#]*)/g, (whole, mark: string, name: string) => {
    return secretName.test(decoded(name)) ? `${mark}${name}=***` : whole;
  });
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
