// Studio: the web app of this package as assets of a server. It is made by `npm run build` and read once.

import { BoughError } from "../base/errors.ts";
import { nodeModule } from "../base/node.ts";
import type { AssetsOptions } from "./assets.ts";

/** Where `studio` is served. */
export interface StudioOptions {
  /** The path of Studio, below the server's prefix (default "": it is at `/`). */
  readonly path?: string;
}

/** No inline script or style, no HTML set by scripts, and no request to another origin. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "style-src-attr 'none'",
  "img-src 'self' blob: data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

export function studioAssets({ path = "" }: StudioOptions): AssetsOptions {
  return { files: findStudio(), path, policy, immutable: /^assets\// };
}

/** Beside the bundles of the package, or in the `dist` of a checkout whose sources run. */
function findStudio(): string {
  const fs = nodeModule<typeof import("node:fs")>("node:fs");
  const { fileURLToPath } = nodeModule<typeof import("node:url")>("node:url") ?? {};
  if (!fs || !fileURLToPath) throw missing("Studio's files are read from the package, which needs Node.");
  const places = ["../studio/", "../../dist/studio/"].map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = places.find((place) => fs.existsSync(`${place}index.html`));
  if (found === undefined) throw missing("Studio is not built. In a checkout, run `npm run build`.");
  return found;
}

function missing(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
