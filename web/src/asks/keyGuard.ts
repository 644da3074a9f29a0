// Decides whether a key that was pressed is a command or only typed text.
//
// A key answers a question only on a card that a person entered by a deliberate act: a click in it,
// Tab into it, or the jump key. Focus that a program moved does not count. And only after a pause:
// no character was typed, no jump was made and the card did not change for `PAUSE`. So text that is
// typed where no field has the focus answers nothing, however the focus got there. What grants more
// than one call, and every answer to a plan, needs the same key a second time.
//
// The guard knows the DOM and the clock; it knows no hub, no React and no answers: a card marks its
// buttons with `data-key`, and with `data-twice` (the end of "Press A again to …").
import { text as catalogue } from "../text";
import { keysEnabled } from "../ui/preferences";

/** In milliseconds: how long nothing was typed and nothing moved before a key answers. */
export const PAUSE = 400;
/** In milliseconds: how long the second press may take. */
export const SECOND_PRESS = 4000;

/** The cards that can be answered. */
export const OPEN_CARD = "[data-ask][data-state='open']";
/** Dialogs, menus and lists that are open: keys are theirs. */
const OVER_THE_PAGE = "dialog[open], [data-keeps-keys]";
const FIELDS = "input, textarea, select, [contenteditable]:not([contenteditable='false'])";

/** The parts of a keyboard event that the guard uses. */
export type Press = Pick<
  KeyboardEvent,
  | "key"
  | "ctrlKey"
  | "metaKey"
  | "altKey"
  | "shiftKey"
  | "repeat"
  | "isComposing"
  | "keyCode"
  | "target"
>;

/** Whether an element takes typed text. */
export function isField(element: EventTarget | null): boolean {
  if (!(element instanceof HTMLElement)) return false;
  return element.isContentEditable || element.closest(FIELDS) !== null;
}

/** Whether an event belongs to an input method that composes a character. */
export function composes(press: Pick<Press, "isComposing" | "keyCode">): boolean {
  return press.isComposing || press.keyCode === 229;
}

/** Whether a key types a character. */
export function writes({ key, ctrlKey, metaKey }: Press): boolean {
  if (ctrlKey || metaKey) return false;
  return [...key].length === 1 || key === "Dead" || key === "Process" || key === "Unidentified";
}

function cardOf(target: EventTarget | null): HTMLElement | null {
  return target instanceof Element ? target.closest<HTMLElement>(OPEN_CARD) : null;
}

const NEVER = Number.NEGATIVE_INFINITY;

interface Pending {
  key: string;
  words: string;
  timer: ReturnType<typeof setTimeout>;
}

export class KeyGuard {
  /** The card that a person is in. */
  private card: HTMLElement | undefined;
  private changedAt = NEVER;
  private jumpedAt = NEVER;
  /** When a character was typed; and when one was typed that was not a command. */
  private typedAt = NEVER;
  private strayAt = NEVER;
  private pending: Pending | undefined;
  /** A hint that stays until the person leaves the card or its keys act. */
  private told: { card: HTMLElement; words: string } | undefined;
  /** The question in whose card a person clicked last. */
  private clickedAsk: string | undefined;
  private acts = false;
  private tabbing = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly listeners = new Set<() => void>();

  /** Whether a button is being pressed by its key just now. */
  byKey = false;

  /** `enabled` is whether the person wants single keys at all. */
  constructor(private readonly enabled: () => boolean = () => true) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Whether keys act on this card now. */
  ready(card: HTMLElement | null): boolean {
    return card !== null && this.card === card && this.acts;
  }

  /** The hint on this card for a key that must be pressed a second time. */
  hint(card: HTMLElement | null): string {
    if (card !== null && this.told?.card === card) return this.told.words;
    if (!this.pending || card === null || this.card !== card) return "";
    return catalogue.asks.pressAgain(this.pending.key.toUpperCase(), this.pending.words);
  }

  /** Whether this card is the one that a person is in. */
  isIn(card: Element | null | undefined): boolean {
    return card != null && this.card === card;
  }

  // --- where a person is ---------------------------------------------------------------------

  /** A person clicked or tapped. */
  clicked(target: EventTarget | null): void {
    this.forget();
    this.told = undefined;
    const card = cardOf(target);
    if (card) this.enter(card);
    else this.notify();
  }

  /**
   * Whether this click is the second one of a double click, and meant for what was there before: the
   * first click settled a card, and another one has moved under the pointer.
   */
  isEcho({ target, detail }: Pick<MouseEvent, "target" | "detail">): boolean {
    const ask = cardOf(target)?.dataset.ask;
    const echo = detail > 1 && ask !== undefined && ask !== this.clickedAsk;
    if (detail === 1) this.clickedAsk = ask;
    return echo;
  }

  /** Something was clicked, or its key was pressed: the card may show something else now. */
  used(target: EventTarget | null): void {
    const card = cardOf(target);
    if (card) this.changed(card);
  }

  /** An element got the focus. Only Tab enters a card this way. */
  focused(target: EventTarget | null): void {
    const card = cardOf(target);
    if (card && this.tabbing) this.enter(card);
    else this.notify(); // a field of the card takes the keys for itself
  }

  /** An element lost the focus, to another one or to none. */
  blurred(next: EventTarget | null): void {
    if (this.card && !(next instanceof Node && this.card.contains(next))) this.leave(this.card);
  }

  /** The jump key was pressed, or the page changed: keys that are typed now were meant for the old page. */
  jumped(): void {
    this.jumpedAt = performance.now();
    this.forget();
    this.notify();
  }

  /** The jump has reached its card, which gets the focus. */
  arrived(card: HTMLElement): void {
    card.focus();
    if (card.matches(OPEN_CARD)) this.enter(card);
    this.jumped();
  }

  /** A form in the card was closed: the person is still in the card. */
  back(card: HTMLElement): void {
    card.focus({ preventScroll: true });
    if (card.matches(OPEN_CARD)) this.enter(card);
    this.changed(card);
  }

  /** The card shows something else now. */
  changed(card: HTMLElement): void {
    if (this.card !== card) return;
    if (!card.matches(OPEN_CARD)) return this.leave(card);
    this.changedAt = performance.now();
    this.forget();
    this.notify();
  }

  /** Show a hint on this card. */
  announce(card: HTMLElement, words: string): void {
    this.told = { card, words };
    this.notify();
  }

  /** The card is gone, settled, or has lost the focus. */
  leave(card: HTMLElement): void {
    if (this.told?.card === card && !card.isConnected) this.told = undefined;
    if (this.card !== card) return;
    this.card = undefined;
    this.forget();
    this.notify();
  }

  private enter(card: HTMLElement): void {
    if (this.card !== card) {
      this.forget();
      this.card = card;
      this.changedAt = NEVER;
    }
    this.notify();
  }

  // --- keys ------------------------------------------------------------------------------------

  /**
   * The effect of a key: it presses a button of the card, is a command of the page, or nothing. Call
   * it once for every key, including keys that are typed into a field.
   */
  press(press: Press, commands: ReadonlySet<string>): HTMLButtonElement | "command" | undefined {
    this.tabs(press);
    if (!this.enabled()) return undefined;
    const second = press.key === this.pending?.key && isAlone(press);
    // A held key is one press: it neither confirms nor cancels.
    const held = press.key === this.pending?.key && press.repeat;
    if (!second && !held) this.forget();
    const now = performance.now();
    const button = isAlone(press) ? this.button(press.key) : undefined;
    const acts = button !== undefined && this.wait() <= 0;
    const amid = now - this.strayAt < PAUSE; // amid text that is typed
    const command = !button && !amid && isFree(press) && commands.has(press.key);
    if (writes(press)) {
      this.typedAt = now;
      if (!acts && !command) this.strayAt = now;
    }
    const pressed = acts && (second || button.dataset.twice === undefined);
    if (acts) this.told = undefined;
    if (pressed) this.forget();
    else if (acts) this.wantAgain(press.key, button.dataset.twice ?? "");
    this.notify();
    if (pressed) return button;
    return command ? "command" : undefined;
  }

  /** Press a button for its key. */
  click(button: HTMLButtonElement): void {
    this.byKey = true;
    try {
      button.click();
    } finally {
      this.byKey = false;
    }
  }

  private wantAgain(key: string, words: string): void {
    const timer = setTimeout(() => {
      this.forget();
      this.notify();
    }, SECOND_PRESS);
    this.pending = { key, words, timer };
  }

  /** How long until keys act, in milliseconds. */
  private wait(): number {
    const last = Math.max(this.changedAt, this.jumpedAt, this.typedAt);
    return last + PAUSE - performance.now();
  }

  private button(key: string): HTMLButtonElement | undefined {
    const card = this.card;
    if (!card?.isConnected || !card.contains(document.activeElement)) return undefined;
    const buttons = card.querySelectorAll<HTMLButtonElement>("button[data-key]");
    return [...buttons].find((one) => one.dataset.key === key && !one.disabled);
  }

  /** Tab moves the focus before anything else happens. */
  private tabs({ key, ctrlKey, metaKey, altKey }: Press): void {
    if (key !== "Tab" || ctrlKey || metaKey || altKey) return;
    this.tabbing = true;
    setTimeout(() => {
      this.tabbing = false;
    });
  }

  private forget(): void {
    clearTimeout(this.pending?.timer);
    this.pending = undefined;
  }

  /** Notify now, and again when keys act. */
  private notify(): void {
    clearTimeout(this.timer);
    const wait = this.card ? this.wait() : 0;
    this.acts = wait <= 0 && this.enabled() && !isField(document.activeElement);
    if (wait > 0) this.timer = setTimeout(() => this.notify(), Math.ceil(wait));
    for (const listener of this.listeners) listener();
  }
}

/** Whether it is one key alone, pressed once, outside text fields. */
function isAlone(press: Press): boolean {
  return isFree(press) && !press.shiftKey;
}

/** The same, for a key that may need Shift to be typed. */
function isFree(press: Press): boolean {
  if (press.ctrlKey || press.metaKey || press.altKey || press.repeat || composes(press))
    return false;
  if (isField(press.target) || isField(document.activeElement)) return false;
  return document.querySelector(OVER_THE_PAGE) === null;
}

export const guard = new KeyGuard(keysEnabled);
