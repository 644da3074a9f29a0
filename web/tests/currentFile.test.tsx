import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AskOpened, Me } from "../src/api/types";
import {
  type CurrentFile,
  replacementText,
  type SeenFile,
  withFile,
} from "../src/asks/currentFile";
import { PermissionForm } from "../src/asks/PermissionForm";
import { store } from "../src/state/store";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

const file = (state: SeenFile["state"], text = ""): SeenFile => ({ path: "/w/a", state, text });
const AFTER = "one\nTWO\nthree\n";

async function drawn(answer: () => Promise<object>, rights = ["steer"]): Promise<HTMLElement> {
  const asked = vi.fn(answer);
  vi.stubGlobal("fetch", async (path: string) => {
    expect(path).toBe("/api/asks/s.1/file");
    return { ok: true, status: 200, json: asked };
  });
  store.state.set({ me: { name: "ada", rights } as unknown as Me });
  const opened = {
    ask: "s.1",
    ask_kind: "tool",
    tool: "Write",
    title: "a",
    request: { input: { file_path: "/w/a", content: AFTER } },
  } as unknown as AskOpened;
  const place = document.createElement("div");
  document.body.append(place);
  const form = <PermissionForm opened={opened} busy={false} answer={() => {}} />;
  await act(async () => createRoot(place).render(form));
  expect(asked).toHaveBeenCalledTimes(rights.length);
  return place;
}
const signs = (place: HTMLElement): string[] =>
  [...place.querySelectorAll(".code-row")].map((row) => row.textContent?.trim() ?? "");

describe("a call that replaces a file", () => {
  beforeEach(() => document.body.replaceChildren());
  afterEach(() => vi.unstubAllGlobals());

  it("is shown as the change that it makes", async () => {
    const place = await drawn(async () => file("text", "one\ntwo\nthree\n"));
    expect(signs(place)).toEqual(["one", "-two", "+TWO", "three"]);
    expect(place.textContent).toContain("replaces the whole file of 3 lines");
  });

  it("is shown whole where there is no file, or where it cannot be read", async () => {
    const created = await drawn(async () => file("missing"));
    expect(signs(created)).toEqual(["+one", "+TWO", "+three"]);
    expect(created.textContent).toContain("creates a new file");
    const failed = await drawn(async () => {
      throw new Error("no such machine");
    });
    expect(signs(failed)).toEqual(["+one", "+TWO", "+three"]);
    expect(failed.textContent).toContain("no such machine");
  });

  it("reads nothing for somebody who may not answer", async () => {
    const place = await drawn(async () => file("text", "secret"), []);
    expect(place.textContent).not.toContain("secret");
  });
});

describe("the file of a question", () => {
  it.each([
    [{ changed: false }, "Reading it"],
    [{ changed: false, file: file("binary") }, "it is not a text"],
    [{ changed: false, file: file("too_large") }, "it is too large"],
    [{ changed: false, file: file("link") }, "it is a link"],
    [{ changed: false, file: file("outside") }, "outside of the session's folder"],
    [{ changed: false, file: file("text", AFTER) }, "leaves the file as it is"],
  ] as [CurrentFile, string][])("is described: %o", (current, words) => {
    expect(replacementText(current, AFTER)).toContain(words);
  });

  it("counts as changed when it is another than at first", () => {
    const first = withFile({ changed: false }, file("text", "a"));
    expect(first.changed).toBe(false);
    expect(withFile(first, file("text", "a"))).toBe(first);
    expect(withFile(first, file("text", "b")).changed).toBe(true);
    expect(withFile(first, file("missing")).changed).toBe(true);
  });
});
