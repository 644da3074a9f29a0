import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { jumpTo } from "../session/jump";
import { store } from "../state/store";
import { Modal } from "../ui/Modal";

const KEYS: [string, string, [string, string][]][] = [
  [
    "Everywhere",
    "outside of fields",
    [
      ["g", "go to the next question that waits for you"],
      ["c", "write to the agent"],
      ["?", "show these keys"],
    ],
  ],
  [
    "A call",
    "in its card",
    [
      ["y", "allow it once"],
      ["s", "allow it for the session"],
      ["a", "allow it for always"],
      ["e", "change it first"],
      ["n", "deny it"],
    ],
  ],
  [
    "A plan",
    "in its card",
    [
      ["1", "do it, accept edits"],
      ["2", "do it, ask about every call"],
      ["3", "do it in a new conversation"],
      ["4", "keep planning, with your comments"],
      ["5", "reject it"],
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
      ["Escape", "interrupt the turn"],
    ],
  ],
];

/** The keys that work on every page, and the dialog that lists all keys. */
export function Keys() {
  const [help, setHelp] = useState(false);
  const [, go] = useLocation();
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const at = event.target;
      const typing = at instanceof HTMLElement && at.matches("input, textarea, select, dialog *");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") setHelp(true);
      else if (event.key === "g") next(go);
      else if (event.key === "c") write(event);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
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
                    {key.split(" ").map((one) => (
                      <kbd key={one}>{one}</kbd>
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

/** To the question that has waited longest; from one of them, to the one after it. */
function next(go: (to: string) => void): void {
  const asks = [...store.get().asks.values()].sort((a, b) => a.at - b.at);
  const here = document.activeElement?.closest<HTMLElement>("[data-ask]")?.dataset.ask;
  const found = asks[(asks.findIndex((ask) => ask.opened.ask === here) + 1) % asks.length];
  if (!found) return;
  jumpTo(found.opened.ask);
  go(`/s/${encodeURIComponent(found.session)}`);
}

function write(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLTextAreaElement>(".composer textarea");
  if (!field) return;
  event.preventDefault();
  field.focus();
}
