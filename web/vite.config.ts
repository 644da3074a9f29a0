import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import type { Plugin, Rolldown } from "vite";
import { defineConfig } from "vitest/config";
import { pwa } from "./src/text/en/pwa.ts";

const SESSION = "/src/session/SessionPage.tsx";
const INBOX = "/src/inbox/Inbox.tsx";
const MAIN = "/src/main.tsx";

// A page is few files: each one costs a round trip, and a phone has a slow one. So there are three
// groups: what every page needs, what the inbox and a session both need, and the rest of a session.
const GROUPS: readonly [string, (in_: (page: string) => boolean) => boolean][] = [
  ["app", (in_) => in_(MAIN)],
  ["cards", (in_) => in_(INBOX) && in_(SESSION)],
  ["session", (in_) => in_(SESSION)],
];

/** The chunk of a module: by the pages that import it, not counting what they load later. */
function chunkOf(): (id: string, context: Rolldown.ChunkingContext) => string | null {
  const reached = new Map<string, Set<string>>();
  const walk = (page: string, id: string, context: Rolldown.ChunkingContext): void => {
    const pages = reached.get(id) ?? new Set();
    if (pages.has(page)) return;
    reached.set(id, pages.add(page));
    for (const next of context.getModuleInfo(id)?.importedIds ?? []) walk(page, next, context);
  };
  return (id, context) => {
    if (!reached.size) {
      const root = import.meta.dirname;
      for (const page of [MAIN, INBOX, SESSION]) walk(page, root + page, context);
    }
    const pages = reached.get(id);
    return GROUPS.find(([, has]) => has((page) => pages?.has(page) ?? false))?.[0] ?? null;
  };
}

/**
 * The page's own script, in the page itself: it begins to read a session and to load the code that
 * shows it while the app is being loaded. The hub allows it by its hash.
 */
function prefetch(): Plugin {
  const source = readFileSync(new URL("src/prefetch.js", import.meta.url), "utf8");
  const bare = source.replace(/^\s*\/\/.*\n/gm, "").trim();
  return {
    name: "prefetch",
    transformIndexHtml: {
      order: "post",
      handler: (html, { bundle }) => {
        const files = JSON.stringify(bundle ? filesOf(bundle, SESSION) : []);
        const children = bare.replace("SESSION_FILES", () => files);
        if (children === bare) throw new Error("prefetch.js does not name SESSION_FILES");
        const texts = html.replace("NO_SCRIPT", pwa.noScript).replace("APP_NAME", pwa.name);
        return { html: texts, tags: [{ tag: "script", children, injectTo: "head-prepend" }] };
      },
    },
  };
}

/** The service worker and the manifest, with their texts from the catalogue. */
function worker(): Plugin {
  const read = (name: string): string =>
    readFileSync(new URL(`src/pwa/${name}`, import.meta.url), "utf8");
  return {
    name: "worker",
    generateBundle() {
      const bare = read("serviceWorker.js");
      const source = bare.replace("= WORKER_TEXTS", () => `= ${JSON.stringify(pwa)}`);
      if (source === bare) throw new Error("serviceWorker.js does not use WORKER_TEXTS");
      this.emitFile({ type: "asset", fileName: "sw.js", source });
      const { name, description } = pwa;
      const manifest = {
        ...JSON.parse(read("manifest.json")),
        name,
        short_name: name,
        description,
      };
      this.emitFile({
        type: "asset",
        fileName: "manifest.webmanifest",
        source: JSON.stringify(manifest),
      });
    },
  };
}

/** The files of a page that is loaded when it is needed, but for those that every page has. */
function filesOf(bundle: Rolldown.OutputBundle, page: string): string[] {
  const chunks = Object.values(bundle).filter((one) => one.type === "chunk");
  const found = new Set<string>();
  const add = (chunk: Rolldown.OutputChunk | undefined): void => {
    if (!chunk || found.has(chunk.fileName)) return;
    found.add(chunk.fileName);
    for (const file of chunk.viteMetadata?.importedCss ?? []) found.add(file);
    for (const file of chunk.imports) add(chunks.find((one) => one.fileName === file));
  };
  add(chunks.find((one) => one.isEntry));
  const shared = new Set(found);
  add(chunks.find((one) => one.moduleIds.some((id) => id.endsWith(page))));
  return [...found].filter((file) => !shared.has(file)).map((file) => `/${file}`);
}

// The deck is built into the Python package; `make run` serves it from there.
export default defineConfig({
  plugins: [
    react(),
    prefetch(),
    worker(),
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
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ name: chunkOf(), debugName: "pages" }] },
      },
    },
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
