import { useCallback } from "react";
import { get } from "../api/http";
import type { Machine } from "../api/types";
import { ErrorText } from "../ui/ErrorText";
import { moment, plural } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { useQuery } from "../ui/useQuery";

/** The machines that run agents. */
export default function Machines() {
  const found = useQuery(useCallback(() => get<{ machines: Machine[] }>("/api/machines"), []));
  const machines = found.value?.machines ?? [];
  return (
    <div className="page">
      <PageHead title="Machines" />
      <ErrorText error={found.error} />
      {machines.map((machine) => (
        <section key={machine.name} className="card">
          <div className="buttons">
            <strong>{machine.name}</strong>
            <span className="badge" data-tone={machine.connected ? "good" : "bad"}>
              <span className="dot" aria-hidden="true" />
              {machine.connected ? "connected" : "not connected"}
            </span>
          </div>
          <p className="muted">
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
        <p className="muted">
          No runner is connected yet. The hub starts the local one automatically.
        </p>
      )}
      <p className="hint">
        To add a machine, run <code>quarterdeck runner --hub URL --token-file FILE</code>
      </p>
    </div>
  );
}
