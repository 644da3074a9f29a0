import { useEffect, useRef } from "react";
import { askTitle } from "../asks/request";
import { nameOf } from "../state/sessions";
import { store, useAppState } from "../state/store";
import { text } from "../text";
import { withMarks } from "./marks";
import { isEnabled, playSound } from "./preferences";
import { renewPush } from "./push";

/** Notifies a person who looks elsewhere: by the title, by a notification, by a sound. */
export function Notifications() {
  const asks = useAppState((state) => state.asks);
  const known = useRef<ReadonlySet<string> | undefined>(undefined);
  useEffect(() => {
    if (isEnabled("push")) void renewPush();
  }, []);
  useEffect(() => {
    document.title = asks.size ? text.app.titleWaiting(asks.size) : text.app.name;
    if ("setAppBadge" in navigator) void navigator.setAppBadge(asks.size).catch(() => undefined);
    const before = known.current;
    known.current = new Set(asks.keys());
    if (!before) return; // what was open when the page was opened is on the screen
    const fresh = [...asks.values()].filter((ask) => !before.has(ask.opened.ask));
    if (!fresh.length) return;
    if (isEnabled("sound")) playSound();
    if (!isEnabled("notify") || document.visibilityState === "visible") return;
    for (const ask of fresh) {
      const session = store.get().sessions.get(ask.session);
      const note = new Notification(
        text.app.isWaiting(session ? nameOf(session) : text.app.anAgent),
        {
          body: withMarks(askTitle(ask.opened)),
          tag: ask.opened.ask,
        },
      );
      note.onclick = () => {
        window.focus();
        location.assign(`/s/${encodeURIComponent(ask.session)}`);
      };
    }
  }, [asks]);
  return null;
}
