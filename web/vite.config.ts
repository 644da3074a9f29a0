import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The deck is built into the Python package; `make run` serves it from there.
export default defineConfig({
  plugins: [
    react(),
    {
      // Diagrams are drawn in a frame without an origin, which can load plain scripts only.
      name: "mermaid",
      generateBundle() {
        const source = readFileSync(
          new URL("node_modules/mermaid/dist/mermaid.min.js", import.meta.url),
        );
        this.emitFile({ type: "asset", fileName: "diagram/mermaid.js", source });
      },
    },
  ],
  build: {
    outDir: "../src/quarterdeck/fronts/http/deck",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
    modulePreload: { polyfill: false },
  },
  css: {
    modules: {
      // Readable, and the same in each build: `asks.module.css` has `.asks-heading`.
      localsConvention: "camelCaseOnly",
      generateScopedName: (name, file) => {
        const feature = /([^/]+)\.module\.css/.exec(file)?.[1] ?? "";
        return `${feature}-${name}`.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      },
    },
  },
  test: {
    css: { include: [/\.module\.css$/], modules: { classNameStrategy: "scoped" } },
    environment: "happy-dom",
    pool: "vmThreads", // each file alone, as elsewhere, and half the processor time
    include: ["tests/**/*.test.{ts,tsx}"],
    testTimeout: 60_000, // a machine may be busy with something else
  },
});
