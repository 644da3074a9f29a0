import { useCallback } from "react";
import { get } from "../api/http";
import type { Machine } from "../api/types";
import { moment, plural } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { useHub } from "../ui/useHub";

/** The machines that run agents. */
export default function Machines() {
  const found = useHub(useCallback(() => get<{ machines: Machine[] }>("/api/machines"), []));
  const machines = found.value?.machines ?? [];
  return (
    <div className="page">
      <PageHead title="Machines" />
      {found.error && <p className="error">{found.error}</p>}
      {machines.map((machine) => (
        <section key={machine.name} className="card">
          <div className="buttons">
            <strong>{machine.name}</strong>
            <span className="badge" data-tone={machine.connected ? "idle" : "bad"}>
              <span className="dot" aria-hidden="true" />
              {machine.connected ? "connected" : "not connected"}
            </span>
          </div>
          <p className="why">
            {plural(machine.runs ?? 0, "agent")}
            {machine.version && ` · runner ${machine.version}`}
            {machine.memory_available
              ? ` · ${Math.round(machine.memory_available / 2 ** 20)} MB free`
              : ""}
            {machine.load !== undefined &&
              machine.load !== null &&
              ` · load ${machine.load.toFixed(1)}`}
            {machine.since && ` · since ${moment(machine.since)}`}
          </p>
        </section>
      ))}
      {!machines.length && !found.loading && !found.error && (
        <p className="why">
          No runner has come yet. The hub starts the one on its own machine by itself.
        </p>
      )}
      <p className="hint">
        Another machine joins with <code>quarterdeck runner --hub URL --token-file FILE</code>
      </p>
    </div>
  );
}
