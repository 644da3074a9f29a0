import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { giveUp, jumpTo } from "../session/jump";
import { store } from "../state/store";
import { Modal } from "../ui/Modal";
import { guard } from "./keyGuard";

const KEYS: [string, string, [string, string][]][] = [
  [
    "Everywhere",
    "outside of fields",
    [
      ["g", "go to a question that waits for you: of this session first, then the next"],
      ["c", "write to the agent"],
      ["?", "show these keys"],
    ],
  ],
  [
    "A call",
    "in its card, once you are in it",
    [
      ["y", "allow it once"],
      ["s s", "allow it for the session"],
      ["a a", "allow it for always"],
      ["e", "change it first"],
      ["n", "deny it"],
    ],
  ],
  [
    "A plan",
    "in its card, once you are in it",
    [
      ["1 1", "do it, accept edits"],
      ["2 2", "do it, ask about every call"],
      ["3 3", "do it in a new conversation"],
      ["4 4", "keep planning, with your comments"],
      ["5 5", "reject it"],
    ],
  ],
  [
    "Writing",
    "in the composer",
    [
      ["Enter", "send, or queue while a turn runs"],
      ["Shift Enter", "another line"],
      ["↑ ↓", "what was sent before"],
      ["/ @", "commands and files"],
      ["Escape", "close what is open; then interrupt the turn"],
    ],
  ],
];

const COMMANDS = new Set(["g", "c", "?"]);

/** The keys that work on every page and on cards, and the dialog that lists all keys. */
export function Keys() {
  const [help, setHelp] = useState(false);
  const [location, go] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is shown
  useEffect(() => guard.jumped(), [location]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const does = guard.press(event, COMMANDS);
      if (!does) return;
      // What opens a field moves the focus there: the key itself is not written into it.
      event.preventDefault();
      if (does !== "command") does.click();
      else if (event.key === "?") setHelp(true);
      else if (event.key === "g") next(go);
      else write();
    };
    const clicked = (event: Event): void => {
      giveUp();
      guard.clicked(event.target);
    };
    // What a button of a card does may show something else on it: that is to be seen first.
    const used = (event: Event): void => guard.used(event.target);
    const focused = (event: FocusEvent): void => guard.focused(event.target);
    const blurred = (event: FocusEvent): void => guard.blurred(event.relatedTarget);
    document.addEventListener("keydown", pressed, true);
    document.addEventListener("pointerdown", clicked, true);
    document.addEventListener("click", used, true);
    document.addEventListener("focusin", focused, true);
    document.addEventListener("focusout", blurred, true);
    return () => {
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
      <div className="keys">
        {KEYS.map(([title, where, keys]) => (
          <section key={title}>
            <h3>
              {title} <span className="why">{where}</span>
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

/**
 * To the question of the open session that has waited longest, and else to the one of all that has;
 * from one of them, to the one after it.
 */
function next(go: (to: string) => void): void {
  const asks = [...store.get().asks.values()].sort((a, b) => a.at - b.at);
  const card = document.activeElement?.closest<HTMLElement>("[data-ask]");
  const here = asks.findIndex((ask) => ask.opened.ask === card?.dataset.ask);
  const open = asks.find((ask) => pathOf(ask.session) === location.pathname);
  // A card that has the focus by no act of a person is entered before it is left.
  const after = guard.isIn(card) ? asks[(here + 1) % asks.length] : asks[here];
  const found = here < 0 ? (open ?? asks[0]) : after;
  if (!found) return;
  guard.jumped();
  jumpTo(found.opened.ask);
  go(pathOf(found.session));
}

const pathOf = (session: string): string => `/s/${encodeURIComponent(session)}`;

function write(): void {
  document.querySelector<HTMLTextAreaElement>(".composer textarea")?.focus();
}
