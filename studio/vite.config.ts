// Studio, built into the package: dist/studio. Every file has a hash in its name but the page, and nothing is inlined, so that the
// server's policy can be strict.

import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  build: {
    outDir: "../dist/studio",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 600,
  },
  // `npm run studio` on a page that is built anew with every change: requests go to a server that runs beside it.
  server: {
    proxy: {
      "^/(agents|sessions|interactions|audit|events|health|ready)": { target: "http://127.0.0.1:4600", ws: true },
    },
  },
});
