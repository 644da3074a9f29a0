// A code for the Telegram bot is shown when it is asked for, and an error when there is none.
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import Settings from "../src/panels/Settings";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

afterEach(() => vi.unstubAllGlobals());

async function pressed(answer: Response): Promise<string> {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (path: string) => {
    asked.push(path);
    // The page also asks for the hub, which is not what is looked at here.
    return path === "/api/hub" ? Response.json({ version: "1", reach: null }) : answer;
  });
  const place = document.createElement("div");
  const root = createRoot(place);
  await act(async () => root.render(<Settings />));
  const button = [...place.querySelectorAll("button")].find(
    (each) => each.textContent === "Pair a Telegram chat",
  );
  await act(async () => button?.click());
  const text = place.textContent ?? "";
  await act(async () => root.unmount());
  expect(asked).toContain("/api/pairing/code");
  return text;
}

describe("a code for Telegram", () => {
  it("is shown with what to send", async () => {
    expect(await pressed(Response.json({ code: "7K2M-Q9XD-4TRB" }))).toContain(
      "send the bot: /pair 7K2M-Q9XD-4TRB",
    );
  });

  it("is missing when the hub refuses, and the page says why", async () => {
    const problem = { title: "Not possible", detail: "the disk is full", status: 503, code: "x" };
    expect(await pressed(Response.json(problem, { status: 503 }))).toContain("the disk is full");
  });
});
