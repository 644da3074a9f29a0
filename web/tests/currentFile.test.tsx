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
/** A card reads its file again and again: those of a test end with it. */
const roots: { unmount: () => void }[] = [];
afterEach(() =>
  act(() => {
    for (const root of roots.splice(0)) root.unmount();
  }),
);
const AFTER = "one\nTWO\nthree\n";

/** What allows a call, and can be pressed. */
const allows = (place: HTMLElement): string[] =>
  [...place.querySelectorAll("button")]
    .filter((one) => !one.disabled && !one.textContent?.startsWith("Deny"))
    .map((one) => one.textContent ?? "");
const ALLOWS = ["Allow once", "Allow for session …", "Always allow …", "Edit …"];

async function drawn(
  answer: () => Promise<object>,
  rights = ["steer"],
  tool = "Write",
  input: object = { file_path: "/w/a", content: AFTER },
): Promise<HTMLElement> {
  const asked = vi.fn(answer);
  vi.stubGlobal("fetch", async (path: string) => {
    expect(path).toBe("/api/asks/s.1/file");
    return { ok: true, status: 200, json: asked };
  });
  store.state.set({ me: { name: "ada", rights } as unknown as Me });
  const opened = {
    ask: "s.1",
    ask_kind: "tool",
    tool,
    title: "a",
    request: { input },
  } as unknown as AskOpened;
  const place = document.createElement("div");
  document.body.append(place);
  const form = <PermissionForm opened={opened} busy={false} answer={() => {}} />;
  const root = createRoot(place);
  roots.push(root);
  await act(async () => root.render(form));
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

  it.each(["Write", "Edit"])("can be allowed only after its file was read: %s", async (tool) => {
    let say: (file: object) => void = () => undefined;
    const answer = new Promise<object>((done) => {
      say = done;
    });
    const input = { file_path: "/w/a", content: AFTER, old_string: "two", new_string: "TWO" };
    const place = await drawn(() => answer, ["steer"], tool, input);
    expect(place.textContent).toMatch(/Reading (it|the file) …/);
    expect(allows(place)).toEqual([]);
    await act(async () => say(file("text", "one\ntwo\nthree\n")));
    expect(place.textContent).not.toContain("Reading");
    expect(allows(place)).toEqual(ALLOWS);
  });

  it.each(["Write", "Edit"])(
    "can be allowed if its file cannot be read, and says why: %s",
    async (tool) => {
      const input = { file_path: "/w/a", content: AFTER, old_string: "two", new_string: "TWO" };
      const answer = async () => Promise.reject(new Error("no such machine"));
      const place = await drawn(answer, ["steer"], tool, input);
      expect(place.textContent).toContain("no such machine");
      expect(allows(place)).toEqual(ALLOWS);
    },
  );

  it("reads nothing for somebody who may not answer", async () => {
    const place = await drawn(async () => file("text", "secret"), []);
    expect(place.textContent).not.toContain("secret");
    expect(place.textContent).toContain("This replaces the whole file, if there is one.");
    expect(place.textContent).not.toContain("Reading");
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

describe("a call that changes a part of a file", () => {
  beforeEach(() => document.body.replaceChildren());
  afterEach(() => vi.unstubAllGlobals());
  const text = "1\n2\n3\n4\n5\nold $&\n7\n8\n9\n10\nagain\nagain\n";
  const edit = (input: object): Promise<HTMLElement> =>
    drawn(async () => file("text", text), ["steer"], "Edit", { file_path: "/w/a", ...input });

  it("has the lines around the change, and says how many are before and after them", async () => {
    const place = await edit({ old_string: "old $&", new_string: "new $&" });
    const rows = signs(place);
    expect(rows.slice(1, -1)).toEqual(["3", "4", "5", "-old $&", "+new $&", "7", "8", "9"]);
    expect(rows[0]).toContain("2 unchanged lines");
    expect(rows.at(-1)).toContain("3 unchanged lines");
    expect(place.querySelector(".code-plus")?.textContent).toBe("+1");
    const numbers = [...place.querySelectorAll<HTMLElement>(".code-row")].map(
      (row) => row.dataset.line,
    );
    expect(numbers.slice(1, -1)).toEqual(["3", "4", "5", "6", "6", "7", "8", "9"]);
    expect(place.textContent).not.toContain("replaces the whole file");
  });

  it("shows every place where it is for all, and its own lines where the place is not certain", async () => {
    const all = await edit({ old_string: "again", new_string: "once", replace_all: true });
    expect(signs(all).filter((row) => /^[+-]/.test(row))).toEqual([
      "-again",
      "-again",
      "+once",
      "+once",
    ]);
    for (const old_string of ["again", "not there"]) {
      const place = await edit({ old_string, new_string: "once" });
      expect(signs(place)).toEqual([`-${old_string}`, "+once"]);
    }
  });
});
