import { describe, expect, it } from "vitest";
import { forgetTyped, loadDraft, loadUnsent, saveDraft, saveUnsent } from "../src/state/drafts";

describe("a logout", () => {
  it("removes what was typed, and leaves the look of the page", () => {
    localStorage.setItem("quarterdeck.theme", "dark");
    saveDraft("s1", "half a thought");
    saveUnsent({}, { session: "s1", id: "p1", content: "a prompt" });
    forgetTyped();
    expect(loadDraft("s1")).toBe("");
    expect(loadUnsent()).toEqual({});
    expect(localStorage.getItem("quarterdeck.theme")).toBe("dark");
  });
});
