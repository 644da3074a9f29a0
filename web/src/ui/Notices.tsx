import { useEffect, useRef } from "react";
import { askTitle } from "../asks/request";
import { nameOf } from "../state/fleet";
import { store, useDeck } from "../state/store";
import { withMarks } from "./marks";
import { renewPush } from "./push";
import { chime, wanted } from "./wishes";

/** Tells a person who looks elsewhere that an agent waits: in the title, by notification, by sound. */
export function Notices() {
  const asks = useDeck((deck) => deck.asks);
  const known = useRef<ReadonlySet<string> | undefined>(undefined);
  useEffect(() => {
    if (wanted("push")) void renewPush();
  }, []);
  useEffect(() => {
    document.title = asks.size ? `(${asks.size}) Quarterdeck` : "Quarterdeck";
    if ("setAppBadge" in navigator) void navigator.setAppBadge(asks.size).catch(() => undefined);
    const before = known.current;
    known.current = new Set(asks.keys());
    if (!before) return; // what was open when the page was opened is on the screen
    const fresh = [...asks.values()].filter((ask) => !before.has(ask.opened.ask));
    if (!fresh.length) return;
    if (wanted("sound")) chime();
    if (!wanted("notify") || document.visibilityState === "visible") return;
    for (const ask of fresh) {
      const session = store.get().fleet.get(ask.session);
      const note = new Notification(`${session ? nameOf(session) : "An agent"} waits for you`, {
        body: withMarks(askTitle(ask.opened)),
        tag: ask.opened.ask,
      });
      note.onclick = () => {
        window.focus();
        location.assign(`/s/${encodeURIComponent(ask.session)}`);
      };
    }
  }, [asks]);
  return null;
}
