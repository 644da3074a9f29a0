import { afterEach, describe, expect, it, vi } from "vitest";
import { loadDiff, recentDiff } from "../src/changes/recent";
import type { FileChange } from "../src/changes/types";

const file = (over: Partial<FileChange> = {}): FileChange =>
  ({ path: "a.py", status: "modified", added: 2, removed: 1, ...over }) as FileChange;

describe("the diff that was seen last", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("is shown again while the file has as many changed lines, and is the same while nothing changed", async () => {
    let patch = "one";
    vi.stubGlobal("fetch", async () => ({
      ok: true,
      status: 200,
      json: async () => ({ path: "a.py", patch, digest: patch }),
    }));
    expect(recentDiff("s", "session", file())).toBeUndefined();
    const first = await loadDiff("s", "session", file());
    expect(recentDiff("s", "session", file())).toBe(first);
    expect(recentDiff("s", "session", file({ added: 3 }))).toBeUndefined();
    expect(recentDiff("s", "session", file({ status: "deleted" }))).toBeUndefined();
    expect(recentDiff("s", "head", file())).toBeUndefined();
    expect(recentDiff("other", "session", file())).toBeUndefined();
    expect(await loadDiff("s", "session", file())).toBe(first);
    patch = "two";
    expect((await loadDiff("s", "session", file())).patch).toBe("two");
    expect(recentDiff("s", "session", file())?.patch).toBe("two");
    for (let number = 0; number < 6; number += 1) {
      await loadDiff("s", "session", file({ path: `${number}.py` }));
    }
    expect(recentDiff("s", "session", file())).toBeUndefined();
  });
});
