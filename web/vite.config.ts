// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

// File names without hashes: the server gives each an ETag, and web/build.py writes one file of all.
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  // For a machine that is busy with other things, not for a slow test.
  test: { testTimeout: 60_000 },
  build: {
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      output: {
        codeSplitting: false,
        entryFileNames: "assets/page.js",
        assetFileNames: "assets/page[extname]",
      },
    },
  },
});
