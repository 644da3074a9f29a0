import { Server } from "lucide-react";
import { useCallback } from "react";
import { get } from "../api/http";
import type { Machine } from "../api/types";
import { text } from "../text";
import { Empty } from "../ui/Empty";
import { ErrorText } from "../ui/ErrorText";
import { moment } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { useQuery } from "../ui/useQuery";

const words = text.machines;

/** The machines that run agents. */
export default function Machines() {
  const found = useQuery(useCallback(() => get<{ machines: Machine[] }>("/api/machines"), []));
  const machines = found.value?.machines ?? [];
  return (
    <div className="page">
      <PageHead title={words.title} />
      <ErrorText error={found.error} />
      {machines.map((machine) => (
        <section key={machine.name} className="card">
          <div className="buttons">
            <strong>{machine.name}</strong>
            <span className="badge" data-tone={machine.connected ? "good" : "bad"}>
              <span className="dot" aria-hidden="true" />
              {machine.connected ? words.connected : words.notConnected}
            </span>
          </div>
          <p className="muted">{factsOf(machine).join(" · ")}</p>
        </section>
      ))}
      {!machines.length && !found.loading && !found.error && (
        <Empty icon={Server} title={words.none}>
          {words.noneHint}
        </Empty>
      )}
      <p className="hint">
        {words.add} <code>{words.addCommand}</code>
      </p>
    </div>
  );
}

function factsOf(machine: Machine): string[] {
  const { version, memory_available: memory, load, since } = machine;
  return [
    words.agents(machine.runs ?? 0),
    version ? words.runner(version) : "",
    memory ? words.free(Math.round(memory / 2 ** 20)) : "",
    load === undefined || load === null ? "" : words.load(load.toFixed(1)),
    since ? words.since(moment(since)) : "",
  ].filter(Boolean);
}
