import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { forgetTyped, loadDraft } from "../src/state/drafts";
import { rememberPrompt, sentPrompts } from "../src/state/library";
import { Personal } from "../src/state/personal";

interface Change {
  kind: string;
  key: string;
  value: unknown;
  base: number;
}

/** A hub that answers what it is told to. */
let requests: Change[][];
let answers: object[];

beforeEach(() => {
  localStorage.clear();
  requests = [];
  answers = [];
  vi.useFakeTimers();
  vi.stubGlobal("fetch", async (_: string, init: RequestInit) => {
    requests.push(
      init.body ? (JSON.parse(String(init.body)) as { changes: Change[] }).changes : [],
    );
    const answer = answers.shift();
    if (!answer) throw new Error("away");
    return new Response(JSON.stringify(answer), { status: 200 });
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a setting follows the person, and is not taken over while a newer one is on its way", async () => {
  const device = new Personal();
  const seen: string[] = [];
  device.onSetting((key, value) => seen.push(`${key} ${value}`));
  answers.push(page(3, { kind: "setting", key: "theme", value: "dark", at: 1, version: 3 }));
  device.changed(3); // the stream tells
  await settle();
  expect(seen).toEqual(["theme dark"]);
  device.changed(3);
  await settle();
  expect(requests).toHaveLength(1); // this version is known
  device.setting("theme", "light");
  answers.push(page(5, { kind: "setting", key: "theme", value: "light", at: 2, version: 5 }));
  await settle();
  expect(requests[1]).toMatchObject([{ kind: "setting", key: "theme", value: "light" }]);
});

const page = (version: number, ...preferences: object[]) => ({ version, preferences });
const settle = async (): Promise<void> => {
  await vi.advanceTimersByTimeAsync(2000);
};

test("a change is kept until the hub has it, also over a reload", async () => {
  new Personal().draft("s1", "hello");
  await settle(); // the hub is away
  expect(requests).toHaveLength(1);
  answers.push(page(4, { kind: "draft", key: "s1", value: "hello", at: 1, version: 4 }));
  const again = new Personal();
  await again.synchronize();
  expect(requests[1]).toMatchObject([{ kind: "draft", key: "s1", value: "hello", base: 0 }]);
  answers.push(page(4));
  await again.synchronize();
  expect(requests[2]).toEqual([]);
  again.draft("s1", "hello you");
  answers.push(page(5));
  await settle();
  expect(requests[3]).toMatchObject([{ value: "hello you", base: 4 }]);
});

test("a draft of another device is shown, but not over what is being typed", async () => {
  const ours = new Personal();
  const shown: string[] = [];
  ours.onDraft("s1", (text) => shown.push(text));
  answers.push(page(1, { kind: "draft", key: "s1", value: "from the phone", at: 1, version: 1 }));
  await ours.synchronize();
  expect(shown).toEqual(["from the phone"]);
  expect(loadDraft("s1")).toBe("from the phone");

  // The hub joins two drafts; what was typed since the request is not lost.
  ours.draft("s1", "desk");
  let answer: (value: object) => void = () => undefined;
  vi.stubGlobal(
    "fetch",
    () =>
      new Promise((done) => {
        answer = (value) => done(new Response(JSON.stringify(value), { status: 200 }));
      }),
  );
  const under = ours.synchronize();
  ours.draft("s1", "desk and more");
  answer(page(3, { kind: "draft", key: "s1", value: "phone\n\ndesk", at: 2, version: 3 }));
  await under;
  expect(shown.at(-1)).toBe("phone\n\ndesk and more");
});

test("pins and read marks of other devices are taken over", async () => {
  const ours = new Personal();
  const read: [string, number][] = [];
  answers.push(
    page(
      2,
      { kind: "pin", key: "s1", value: true, at: 1, version: 1 },
      { kind: "read", key: "s2", value: 9, at: 1, version: 2 },
    ),
  );
  ours.start((session, seq) => read.push([session, seq]));
  await vi.advanceTimersByTimeAsync(0);
  expect([...ours.pins.get().pinned]).toEqual(["s1"]);
  expect(read).toEqual([["s2", 9]]);
  ours.togglePin("s1");
  expect(ours.pins.get().pinned.size).toBe(0);
  ours.stop();
});

test("who logs out leaves nothing typed behind", () => {
  new Personal().draft("s1", "secret");
  rememberPrompt("an earlier secret");
  rememberPrompt("x".repeat(5000)); // too long to be kept twice
  expect(sentPrompts()).toEqual(["an earlier secret"]);
  forgetTyped();
  expect(JSON.stringify({ ...localStorage })).not.toContain("secret");
});
