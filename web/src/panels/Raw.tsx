import { useState } from "react";
import { store } from "../state/store";
import { clock } from "../ui/format";
import type { PanelProps } from "./Panel";

const SHOWN = 200;

/** The events themselves, newest first, for whoever wants to know exactly. */
export function Raw({ session }: PanelProps) {
  const [kind, setKind] = useState("");
  const events = store.eventsOf(session.session);
  const kinds = [...new Set(events.map((stored) => stored.event.kind))].sort();
  const shown = events
    .filter((stored) => !kind || stored.event.kind === kind)
    .slice(-SHOWN)
    .reverse();
  return (
    <>
      <label className="field">
        <span>Events of this kind</span>
        <select value={kind} onChange={(event) => setKind(event.target.value)}>
          <option value="">all</option>
          {kinds.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <p className="why">
        The last {shown.length} of {events.length} that are loaded.
      </p>
      {shown.map((stored) => (
        <details key={stored.seq}>
          <summary>
            <code>{stored.seq}</code> {stored.event.kind}{" "}
            <span className="why">{clock(stored.at)}</span>
          </summary>
          <pre className="raw">{JSON.stringify(stored.event, null, 2).slice(0, 20_000)}</pre>
        </details>
      ))}
    </>
  );
}
