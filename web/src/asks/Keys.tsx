import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { cancelJump, jumpTo } from "../session/jumpToAsk";
import { store } from "../state/store";
import { Modal } from "../ui/Modal";
import {
  keysEnabled,
  setKeysEnabled,
  setUndoSeconds,
  UNDO_CHOICES,
  undoSeconds,
} from "../ui/preferences";
import styles from "./asks.module.css";
import { guard } from "./keyGuard";
import { SHOW_KEYS } from "./showKeys";

/** All keys: for each group its name, where they act, and the keys with what they do. */
export const SHORTCUTS: [string, string, [string, string][]][] = [
  [
    "Everywhere",
    "outside text fields",
    [
      ["g", "go to the next open question, in this session first"],
      ["c", "go to the composer"],
      ["?", "show these keys"],
    ],
  ],
  [
    "Tool call",
    "in a focused card",
    [
      ["y", "allow once"],
      ["s", "choose what to allow for the session; s again confirms"],
      ["a", "choose what to allow always; a again confirms"],
      ["e", "edit first"],
      ["n", "deny"],
    ],
  ],
  [
    "Plan",
    "in a focused card",
    [
      ["1 1", "approve, accept edits"],
      ["2 2", "approve, ask for each call"],
      ["3 3", "approve in a new conversation"],
      ["4 4", "keep planning, with your comments"],
      ["5 5", "reject"],
    ],
  ],
  [
    "Composer",
    "while writing",
    [
      ["Enter", "send, or queue while a turn runs"],
      ["Shift Enter", "new line"],
      ["↑ ↓", "earlier prompts"],
      ["/ @", "commands and files"],
      ["Escape", "close the open menu; then interrupt the turn"],
    ],
  ],
];

const PAGE_KEYS = new Set(["g", "c", "?"]);

/** The keys that work on every page and on cards, and the dialog that lists all keys. */
export function Keys() {
  const [help, setHelp] = useState(false);
  const [location, go] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is shown
  useEffect(() => guard.jumped(), [location]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const does = guard.press(event, PAGE_KEYS);
      if (!does) return;
      // A key that opens a field moves the focus there: it must not be typed into it.
      event.preventDefault();
      if (does !== "command") guard.click(does);
      else if (event.key === "?") setHelp(true);
      else if (event.key === "g") goToNextAsk(go);
      else focusComposer();
    };
    const clicked = (event: Event): void => {
      cancelJump();
      guard.clicked(event.target);
    };
    // A button may change its card: a person must see the change before keys act.
    const used = (event: Event): void => guard.used(event.target);
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
  return (
    <Modal title="Keys" onClose={() => setHelp(false)}>
      <KeySwitch />
      <UndoChoice />
      <div className={styles.keys}>
        {SHORTCUTS.map(([title, where, keys]) => (
          <section key={title}>
            <h3>
              {title} <span className="muted">{where}</span>
            </h3>
            <dl>
              {keys.map(([key, does]) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((one, index) => (
                      <kbd key={index}>{one}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Modal>
  );
}

/** Whether single keys are commands, in this browser. */
export function KeySwitch() {
  const [on, setOn] = useState(keysEnabled);
  const change = (wanted: boolean): void => {
    setKeysEnabled(wanted);
    setOn(wanted);
  };
  return (
    <p className={styles.keySwitch}>
      <label className="option">
        <input type="checkbox" checked={on} onChange={(event) => change(event.target.checked)} />{" "}
        Use single keys. Without them only Tab, Enter, Space, Escape and the keys of the composer
        act.
      </label>
    </p>
  );
}

/** How long an answer that matters can be taken back, in this browser. */
export function UndoChoice() {
  const [seconds, setSeconds] = useState(undoSeconds);
  const choose = (chosen: number): void => {
    setUndoSeconds(chosen);
    setSeconds(chosen);
  };
  return (
    <p className={styles.keySwitch}>
      <label className="option">
        Time to undo an answer by key, a lasting grant or an approved plan{" "}
        <select value={seconds} onChange={(event) => choose(Number(event.target.value))}>
          {UNDO_CHOICES.map((one) => (
            <option key={one} value={one}>
              {one ? `${one} s` : "none"}
            </option>
          ))}
        </select>
      </label>
    </p>
  );
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
