import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { cancelJump, jumpTo } from "../session/jumpToAsk";
import { store } from "../state/store";
import { text } from "../text";
import { later } from "../ui/later";
import { guard, PAUSE, writes } from "./keyGuard";
import { SHOW_KEYS } from "./showKeys";

const KeysHelp = later(() => import("./KeysHelp").then((module) => module.default));

const PAGE_KEYS = new Set(["g", "c", "?"]);

/** The keys that work on every page and on cards; `KeysHelp` lists them. */
export function Keys() {
  const [help, setHelp] = useState(false);
  const [location, go] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is shown
  useEffect(() => guard.jumped(), [location]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const does = guard.press(event, PAGE_KEYS);
      if (!does) {
        if (writes(event) && !event.repeat) takeBack();
        return;
      }
      // A key that opens a field moves the focus there: it must not be typed into it.
      event.preventDefault();
      if (does !== "command") answerByKey(does);
      else if (event.key === "?") setHelp(true);
      else if (event.key === "g") goToNextAsk(go);
      else focusComposer();
    };
    const clicked = (event: Event): void => {
      cancelJump();
      guard.clicked(event.target);
    };
    // A button may change its card: a person must see the change before keys act.
    const used = (event: MouseEvent): void => {
      if (guard.isEcho(event)) {
        event.preventDefault();
        event.stopPropagation();
      } else guard.used(event.target);
    };
    const focused = (event: FocusEvent): void => guard.focused(event.target);
    const blurred = (event: FocusEvent): void => guard.blurred(event.relatedTarget);
    document.addEventListener("keydown", pressed, true);
    document.addEventListener("pointerdown", clicked, true);
    document.addEventListener("click", used, true);
    document.addEventListener("focusin", focused, true);
    document.addEventListener("focusout", blurred, true);
    const show = (): void => setHelp(true);
    window.addEventListener(SHOW_KEYS, show);
    return () => {
      window.removeEventListener(SHOW_KEYS, show);
      document.removeEventListener("keydown", pressed, true);
      document.removeEventListener("pointerdown", clicked, true);
      document.removeEventListener("click", used, true);
      document.removeEventListener("focusin", focused, true);
      document.removeEventListener("focusout", blurred, true);
    };
  }, [go]);
  if (!help) return null;
  return <KeysHelp onClose={() => setHelp(false)} />;
}

/** The last answer by key: text that begins with an answer key goes on at once. */
let last: { card: HTMLElement; at: number } | undefined;

function answerByKey(button: HTMLButtonElement): void {
  const card = button.closest<HTMLElement>("[data-ask]");
  last = card ? { card, at: performance.now() } : undefined;
  guard.click(button);
}

/** A letter was typed right after an answer by key: it was text, and the answer is taken back. */
function takeBack(): void {
  const { card, at } = last ?? {};
  last = undefined;
  if (!card || at === undefined || performance.now() - at > PAUSE) return;
  if (store.asks.undo(card.dataset.ask ?? "")) guard.announce(card, text.asks.keys.typed);
}

/**
 * Go to the oldest question of the open session, or else to the oldest of all; from a question, to
 * the next one.
 */
function goToNextAsk(go: (to: string) => void): void {
  const asks = [...store.get().asks.values()].sort((a, b) => a.at - b.at);
  const card = document.activeElement?.closest<HTMLElement>("[data-ask]");
  const here = asks.findIndex((ask) => ask.opened.ask === card?.dataset.ask);
  const open = asks.find((ask) => pathOf(ask.session) === location.pathname);
  // A card that a program focused is entered first, and left with the next press.
  const after = guard.isIn(card) ? asks[(here + 1) % asks.length] : asks[here];
  const found = here < 0 ? (open ?? asks[0]) : after;
  if (!found) return;
  guard.jumped();
  jumpTo(found.opened.ask);
  if (location.pathname !== "/") go(pathOf(found.session)); // the inbox has all cards
}

const pathOf = (session: string): string => `/s/${encodeURIComponent(session)}`;

function focusComposer(): void {
  document.querySelector<HTMLTextAreaElement>("[data-composer] textarea")?.focus();
}
