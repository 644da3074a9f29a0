import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { KeyGuard, PAUSE, type Press, SECOND_PRESS } from "../src/asks/keyGuard";

const COMMANDS = new Set(["g", "c", "?"]);

let guard: KeyGuard;

/** A card as the deck draws it, with the buttons of a call or of a plan. */
function makeCard(ask: string, keys: Record<string, string | undefined>): HTMLElement {
  const card = document.createElement("section");
  card.dataset.ask = ask;
  card.dataset.state = "open";
  card.tabIndex = -1;
  for (const [key, twice] of Object.entries(keys)) {
    const button = document.createElement("button");
    button.dataset.key = key;
    if (twice !== undefined) button.dataset.twice = twice;
    card.append(button);
  }
  card.append(document.createElement("textarea"));
  document.body.append(card);
  return card;
}

const makeCall = (ask = "call"): HTMLElement =>
  makeCard(ask, { y: undefined, s: "allow for the session", a: "allow always", n: undefined });

function press(key: string, more: Partial<Press> = {}): string | undefined {
  const does = guard.press(
    {
      key,
      ctrlKey: false,
      metaKey: false,
      altKey: false,
      shiftKey: false,
      repeat: false,
      isComposing: false,
      keyCode: 0,
      target: document.activeElement,
      ...more,
    },
    COMMANDS,
  );
  return does instanceof HTMLElement ? does.dataset.key : does;
}

/** Enter a card as a click does. */
function click(card: HTMLElement): void {
  guard.clicked(card);
  card.focus();
}

const wait = (ms: number): void => void vi.advanceTimersByTime(ms);

/** Press each letter of a text, so many milliseconds apart; gives what they did. */
function type(text: string, apart: number): (string | undefined)[] {
  return [...text]
    .map((letter) => {
      wait(apart);
      return press(letter);
    })
    .filter((does) => does !== undefined);
}

beforeEach(() => {
  vi.useFakeTimers();
  document.body.replaceChildren();
  guard = new KeyGuard();
  wait(10_000);
});
afterEach(() => vi.useRealTimers());

describe("a key answers", () => {
  it("on a card that was clicked", () => {
    click(makeCall());
    expect(press("y")).toBe("y");
  });

  it("on a card that Tab led into, and not where a program moved the focus", () => {
    const card = makeCall();
    card.querySelector("button")?.focus();
    guard.focused(document.activeElement);
    expect(press("y")).toBeUndefined();
    wait(PAUSE);
    press("Tab");
    guard.focused(document.activeElement);
    expect(press("y")).toBe("y");
  });

  it("no longer once another thing has had the focus since", () => {
    const card = makeCall();
    click(card);
    guard.blurred(null);
    card.focus();
    guard.focused(card);
    expect(press("y")).toBeUndefined();
  });

  it("only a while after a jump", () => {
    const card = makeCall();
    guard.arrived(card);
    expect(document.activeElement).toBe(card);
    wait(PAUSE - 1);
    expect(guard.ready(card)).toBe(false);
    expect(press("y")).toBeUndefined();
    wait(PAUSE - 1);
    expect(press("y")).toBeUndefined(); // the key before this one begins the pause anew
    wait(PAUSE);
    expect(guard.ready(card)).toBe(true);
    expect(press("y")).toBe("y");
  });

  it("only a while after the card has changed, and after another page was shown", () => {
    const card = makeCall();
    click(card);
    guard.changed(card);
    wait(PAUSE - 1);
    expect(press("y")).toBeUndefined();
    wait(PAUSE);
    guard.jumped();
    expect(press("y")).toBeUndefined();
    wait(PAUSE);
    expect(press("y")).toBe("y");
  });

  it("only a while after a button of the card was used, which may have shown more of it", () => {
    const card = makeCall();
    click(card);
    guard.used(card.querySelector("button"));
    expect(press("y")).toBeUndefined();
    wait(PAUSE);
    expect(press("y")).toBe("y");
  });

  it("never on a card that is settled or gone, nor on the one beside it", () => {
    const [card, other] = [makeCall("one"), makeCall("two")];
    click(card);
    card.dataset.state = "settled";
    guard.changed(card);
    other.focus(); // as a browser or a program might
    guard.focused(other);
    expect(press("y")).toBeUndefined();
    wait(PAUSE);
    click(other);
    other.remove();
    wait(PAUSE);
    expect(press("y")).toBeUndefined();
  });

  it("not where somebody writes", () => {
    const card = makeCall();
    click(card);
    expect(guard.ready(card)).toBe(true);
    card.querySelector("textarea")?.focus();
    guard.focused(document.activeElement);
    expect(guard.ready(card)).toBe(false);
    expect(press("y")).toBeUndefined();
    wait(PAUSE);
    const rich = document.createElement("div");
    rich.setAttribute("contenteditable", "true");
    rich.tabIndex = 0;
    card.append(rich);
    rich.focus();
    expect(press("y")).toBeUndefined();
  });

  it.each<[string, Partial<Press>]>([
    ["Control", { ctrlKey: true }],
    ["Meta", { metaKey: true }],
    ["Alt", { altKey: true }],
    ["Shift", { shiftKey: true }],
    ["a held key", { repeat: true }],
    ["an input method", { isComposing: true }],
    ["an input method that says so by the code", { keyCode: 229 }],
  ])("not with %s", (_, more) => {
    click(makeCall());
    expect(press("y", more)).toBeUndefined();
  });

  it("not behind a dialog", () => {
    click(makeCall());
    const dialog = document.createElement("dialog");
    dialog.setAttribute("open", "");
    document.body.append(dialog);
    expect(press("y")).toBeUndefined();
  });

  it("not for a button that is off, nor for a key that would break a selector", () => {
    const card = makeCall();
    for (const button of card.querySelectorAll("button")) button.disabled = true;
    click(card);
    for (const key of ["y", '"', "\\", "]"]) {
      expect(press(key)).toBeUndefined();
      wait(PAUSE);
    }
  });
});

describe("what grants more than one call", () => {
  it("wants the same key again, and says so", () => {
    const card = makeCall();
    click(card);
    expect(press("a")).toBeUndefined();
    expect(guard.hint(card)).toBe("Press A again to allow always");
    wait(PAUSE);
    expect(press("a")).toBe("a");
    expect(guard.hint(card)).toBe("");
  });

  it("is not confirmed by a key that is held, or that bounces", () => {
    const card = makeCall();
    click(card);
    press("a");
    for (let count = 0; count < 20; count++) {
      wait(30);
      expect(press("a", { repeat: true })).toBeUndefined();
    }
    wait(50);
    expect(press("a")).toBeUndefined();
    expect(guard.hint(card)).not.toBe("");
  });

  it.each<[string, (card: HTMLElement) => void]>([
    ["another key", () => press("x")],
    ["another answer", () => press("s")],
    ["Escape", () => press("Escape")],
    ["the same key with Control", () => press("a", { ctrlKey: true })],
    ["a click", (card) => click(card)],
    ["the loss of the focus", () => guard.blurred(null)],
    ["a change of the card", (card) => guard.changed(card)],
    ["a jump", () => guard.jumped()],
    ["time", () => wait(SECOND_PRESS)],
  ])("is cancelled by %s", (_, happens) => {
    const card = makeCall();
    click(card);
    press("a");
    wait(PAUSE);
    happens(card);
    expect(guard.hint(card)).not.toContain("Press A");
    click(card);
    wait(PAUSE);
    expect(press("a")).toBeUndefined();
  });

  it("is not confirmed on another card", () => {
    const [card, other] = [makeCall("one"), makeCall("two")];
    click(card);
    press("a");
    wait(PAUSE);
    guard.arrived(other);
    expect(guard.hint(other)).toBe("");
    wait(PAUSE);
    expect(press("a")).toBeUndefined();
  });
});

describe("text that is typed outside of a field", () => {
  const sentences = ["against the rules", "1 more…", "yes, pass all assets", "any gg say 1122"];

  it.each(sentences)("does not answer the card that a jump led to: %s", (sentence) => {
    guard.arrived(makeCall());
    expect(type(sentence, PAUSE / 2)).toEqual([]);
  });

  it.each(sentences)("does not answer the card that it follows a key on: %s", (sentence) => {
    const card = makeCall();
    click(card);
    press("x");
    expect(type(sentence, PAUSE / 2)).toEqual([]);
  });

  it("leads nowhere by a letter in its midst", () => {
    expect(type("against", PAUSE / 2)).toEqual([]);
    wait(PAUSE);
    expect(press("g")).toBe("command");
  });

  it("goes on to be text when its field goes away", () => {
    const field = document.createElement("textarea");
    document.body.append(field);
    field.focus();
    type("again", PAUSE / 2);
    field.remove();
    expect(type("st the rules, going", PAUSE / 2)).toEqual([]);
  });
});

describe("commands of the page", () => {
  it("may follow each other at once, with Shift where a key needs it", () => {
    expect(press("g")).toBe("command");
    expect(press("g")).toBe("command");
    expect(press("?", { shiftKey: true })).toBe("command");
  });

  it("are none in a field or with Control", () => {
    expect(press("c", { ctrlKey: true })).toBeUndefined();
    wait(PAUSE);
    const field = document.createElement("input");
    document.body.append(field);
    field.focus();
    expect(press("g")).toBeUndefined();
  });
});

describe("keys that a person has switched off", () => {
  it("neither answer nor lead anywhere, until they are switched on again", () => {
    let enabled = false;
    guard = new KeyGuard(() => enabled);
    const card = makeCall();
    click(card);
    wait(PAUSE);
    expect([press("y"), press("g"), press("?")]).toEqual([undefined, undefined, undefined]);
    expect(guard.ready(card)).toBe(false);
    enabled = true;
    wait(PAUSE);
    expect(press("y")).toBe("y");
  });
});

describe("a button that its key presses", () => {
  it("can be told from one that was clicked", () => {
    const button = document.createElement("button");
    const seen: boolean[] = [];
    button.addEventListener("click", () => seen.push(guard.byKey));
    guard.click(button);
    button.click();
    expect(seen).toEqual([true, false]);
  });
});
