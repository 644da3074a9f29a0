import { describe, expect, it, vi } from "vitest";
import type { Stored } from "../src/api/types";
import { addDeltas, dropComplete, NO_BLOCKS } from "../src/state/liveBlocks";
import { LiveText } from "../src/state/liveText";

const delta = (text: string, more: object = {}) => ({ session: "s", message: "m1", text, ...more });
const said = (line: unknown): Stored =>
  ({
    session: "s",
    seq: 1,
    position: 1,
    at: 1,
    event: { kind: "said", run: "r", number: 1, line },
  }) as Stored;

describe("text that is being made", () => {
  it("grows by its deltas, each block by itself", () => {
    const live = addDeltas(
      NO_BLOCKS,
      [delta("Hel"), delta("lo"), delta("hm", { thinking: true }), delta("two", { block: 1 })],
      false,
    );
    expect(live.map((block) => block.text)).toEqual(["Hello", "hm", "two"]);
  });

  it("is replaced by a whole", () => {
    const live = addDeltas(addDeltas(NO_BLOCKS, [delta("Hel")], false), [delta("Hello wo")], true);
    expect(live.map((block) => block.text)).toEqual(["Hello wo"]);
  });

  it("goes when its message is there, and other messages stay", () => {
    const live = addDeltas(NO_BLOCKS, [delta("one"), delta("two", { message: "m2" })], false);
    const line = {
      type: "assistant",
      message: { id: "m1", content: [{ type: "text", text: "one" }] },
    };
    expect(dropComplete(live, [said(line)]).map((block) => block.text)).toEqual(["two"]);
  });

  it("keeps the text while only its thinking is complete", () => {
    const live = addDeltas(
      NO_BLOCKS,
      [delta("hm", { thinking: true }), delta("so", { block: 1 })],
      false,
    );
    const line = {
      type: "assistant",
      message: { id: "m1", content: [{ type: "thinking", thinking: "hm" }] },
    };
    expect(dropComplete(live, [said(line)]).map((block) => block.text)).toEqual(["so"]);
  });

  it("loses only the block that is complete", () => {
    const live = addDeltas(NO_BLOCKS, [delta("one"), delta("tw", { block: 1 })], false);
    const line = (words: string): Stored =>
      said({ type: "assistant", message: { id: "m1", content: [{ type: "text", text: words }] } });
    expect(dropComplete(live, [line("one")]).map((block) => block.text)).toEqual(["tw"]);
    expect(dropComplete(live, [line("one"), line("two")])).toEqual([]);
  });

  it("goes with the turn", () => {
    const live = addDeltas(NO_BLOCKS, [delta("one")], false);
    const ended = {
      session: "s",
      seq: 1,
      position: 1,
      at: 1,
      event: { kind: "turn.ended", prompts: [], failed: false, outcome: "success", cost_usd: 0 },
    } as unknown as Stored;
    expect(dropComplete(live, [ended])).toEqual([]);
  });
});

describe("what is drawn of it", () => {
  it("is told once for many deltas, and not before there is a frame", () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "performance", "queueMicrotask"] });
    const frames: FrameRequestCallback[] = [];
    vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
    try {
      const liveText = new LiveText();
      let told = 0;
      liveText.subscribe(() => told++);
      for (let at = 0; at < 200; at++) liveText.receive([delta("x")], false);
      vi.advanceTimersByTime(1000);
      expect([told, frames.length]).toEqual([0, 1]); // a page that is not in sight has no frames
      frames[0]?.(0);
      expect(told).toBe(1);
      expect(liveText.of("s")[0]?.text).toBe("x".repeat(200));
    } finally {
      vi.useRealTimers();
      vi.unstubAllGlobals();
    }
  });

  it("has the same shape until a block comes or goes", () => {
    const liveText = new LiveText();
    liveText.receive([delta("a")], false);
    const shape = liveText.blocksOf("s");
    liveText.receive([delta("b")], false);
    expect(liveText.blocksOf("s")).toBe(shape);
    liveText.receive([delta("c", { block: 1 })], false);
    expect(liveText.blocksOf("s")).toHaveLength(2);
    const content = [{ type: "text", text: "ab" }];
    liveText.dropComplete("s", [said({ type: "assistant", message: { id: "m1", content } })]);
    expect(liveText.blocksOf("s").map((one) => one.block)).toEqual([1]);
  });
});
