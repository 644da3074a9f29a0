// What the head of a session offers to switch to: only what this CLI has, and never what it refuses.
import { describe, expect, it } from "vitest";
import type { Session } from "../src/api/types";
import { effortsOf, modesOf } from "../src/session/head/switches";
import { session } from "./support";

const MODES = ["default", "acceptEdits", "plan", "dontAsk"];
const running = (over: object = {}): Session =>
  session({
    run: "r",
    version: "2.1.325",
    model: "small",
    offers: {
      models: [
        { model: "small", name: "Small", efforts: [], auto: false },
        { model: "large", name: "Large", efforts: ["low", "high"], auto: true },
      ],
    },
    ...over,
  } as object);

describe("the modes that can be chosen", () => {
  it.each([
    ["of a model without auto", {}, MODES],
    ["of a model with auto", { model: "large" }, [...MODES, "auto"]],
    ["of a version without auto", { model: "large", version: "2.1.90" }, MODES],
    [
      "of a session that may skip permissions",
      { spec: { directory: "/", skip_permissions: true } },
      [...MODES, "bypassPermissions"],
    ],
    ["with the one that holds", { mode: "bypassPermissions" }, [...MODES, "bypassPermissions"]],
  ])("%s", (_, over, modes) => {
    expect(modesOf(running(over))).toEqual(modes);
  });
});

describe("the efforts that can be chosen", () => {
  it("are those of the model, and none if it has none", () => {
    expect(effortsOf(running({ model: "large" }))).toEqual(["auto", "low", "high"]);
    expect(effortsOf(running())).toEqual([]);
    expect(effortsOf(running({ offers: null }))).toEqual([]);
  });
});
