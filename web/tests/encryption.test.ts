import { expect, test } from "vitest";
import { isFor, pageNote, wayNotes } from "../src/panels/settings/encryption";

const NONE = {
  way: "none",
  certificate: null,
  problem: "",
  tailscale: null,
  trust: false,
} as const;
const valid = { names: ["deck.example", "*.lan"], begins: 0, ends: 2e12, problem: "" };
const texts = (notes: { text: string }[]) => notes.map((note) => note.text).join(" | ");

test("a page is encrypted, local, or read by everybody on the way", () => {
  expect(pageNote("https:", "deck.example").tone).toBe("good");
  expect(pageNote("http:", "127.0.0.1").tone).toBe("good");
  expect(pageNote("http:", "192.168.1.4").tone).toBe("bad");
});

test("a certificate is for its names, and a star for one part", () => {
  expect(isFor(valid.names, "DECK.example")).toBe(true);
  expect(isFor(valid.names, "a.lan")).toBe(true);
  expect(isFor(valid.names, "a.b.lan")).toBe(false);
  expect(isFor(valid.names, "lan")).toBe(false);
});

test("certificate files are checked for their dates and their names", () => {
  const files = { ...NONE, way: "files", certificate: valid } as const;
  expect(texts(wayNotes("files", files, "https:", "deck.example"))).toContain("valid until");
  expect(texts(wayNotes("files", files, "https:", "other"))).toContain("not for other");
  const old = { ...files, certificate: { ...valid, problem: "expired" } };
  expect(texts(wayNotes("files", old, "https:", "deck.example"))).toContain("has expired");
  const broken = { ...files, certificate: null, problem: "no such file" };
  expect(texts(wayNotes("files", broken, "https:", "x"))).toContain("cannot be read: no such file");
  expect(wayNotes("files", NONE, "http:", "localhost")).toEqual([]);
});

test("Tailscale is found or not, and a proxy must pass on that it encrypts", () => {
  expect(texts(wayNotes("tailscale", NONE, "http:", "x"))).toContain("no certificate");
  const there = { ...NONE, tailscale: "deck.tail.ts.net" };
  expect(texts(wayNotes("tailscale", there, "http:", "x"))).toContain("deck.tail.ts.net");
  const proxy = { ...NONE, way: "proxy" } as const;
  expect(texts(wayNotes("proxy", proxy, "https:", "x"))).toContain("passes on");
  expect(texts(wayNotes("proxy", proxy, "http:", "x"))).toContain("did not come through it");
});
