import { useState } from "react";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { clock } from "../ui/format";
import type { PanelProps } from "./Panel";

const SHOWN = 200;

/** The events themselves, newest first, as the hub sent them. */
export function Raw({ session }: PanelProps) {
  const [kind, setKind] = useState("");
  const events = store.open.eventsOf(session.session);
  const kinds = [...new Set(events.map((stored) => stored.event.kind))].sort();
  const shown = events
    .filter((stored) => !kind || stored.event.kind === kind)
    .slice(-SHOWN)
    .reverse();
  return (
    <>
      <label className={css.field.field}>
        <span>{text.session.raw.kind}</span>
        <select value={kind} onChange={(event) => setKind(event.target.value)}>
          <option value="">{text.session.raw.all}</option>
          {kinds.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <p className={css.texts.muted}>{text.session.raw.shown(shown.length, events.length)}</p>
      {shown.map((stored) => (
        <details key={stored.seq}>
          <summary>
            <code>{stored.seq}</code> {stored.event.kind}{" "}
            <span className={css.texts.muted}>{clock(stored.at)}</span>
          </summary>
          <pre className={css.card.raw}>
            {JSON.stringify(stored.event, null, 2).slice(0, 20_000)}
          </pre>
        </details>
      ))}
    </>
  );
}
