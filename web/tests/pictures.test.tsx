import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import { imagesOf } from "../src/state/contentBlocks";
import { Picture, pictureAddress } from "../src/ui/Picture";

const PATH = `/api/sessions/s/events/4/pictures/${"a1".repeat(16)}`;
const block = (source: object) => [{ type: "image", source: { type: "base64", ...source } }];

describe("the pictures of a story", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("are data, or paths of the hub, and nothing else", () => {
    const png = { media_type: "image/png" };
    expect(imagesOf(block({ ...png, data: "AAAA" }))).toEqual(["data:image/png;base64,AAAA"]);
    expect(imagesOf(block({ ...png, data: "", url: PATH }))).toEqual([PATH]);
    for (const url of ["https://example.org/x.png", "/api/tokens", `${PATH}?x`, `//h${PATH}`, 7]) {
      expect(imagesOf(block({ ...png, data: "", url }))).toEqual([]);
    }
    expect(imagesOf(block({ media_type: "image/svg+xml", data: "", url: PATH }))).toEqual([]);
  });

  it("are read once from the hub, with this page's key", async () => {
    const asked: [string, unknown][] = [];
    localStorage.setItem("quarterdeck.page-key", "the key");
    vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
      asked.push([path, init.headers]);
      return { ok: true, blob: async () => new Blob(["x"]) };
    });
    const [one, other] = await Promise.all([pictureAddress(PATH), pictureAddress(PATH)]);
    expect(one).toBe(other);
    expect(asked).toEqual([[PATH, { "X-Quarterdeck-Page-Key": "the key" }]]);
  });

  it("say so when they cannot be read, and are tried again the next time", async () => {
    vi.stubGlobal("fetch", async () => ({ ok: false, status: 404 }));
    const gone = PATH.replace("/4/", "/5/");
    const place = document.createElement("div");
    const root = createRoot(place);
    root.render(createElement(Picture, { src: gone, alt: "a picture" }));
    await vi.waitFor(() => expect(place.textContent).toBe("This picture cannot be loaded."));
    root.unmount();
    vi.stubGlobal("fetch", async () => ({ ok: true, blob: async () => new Blob(["x"]) }));
    expect(await pictureAddress(gone)).toMatch(/^blob:/);
  });
});
