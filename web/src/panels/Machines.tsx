import { Server } from "lucide-react";
import { useCallback } from "react";
import { get } from "../api/http";
import type { Machine, MachineList } from "../api/types";
import { text } from "../text";
import { css } from "../ui/css";
import { Empty } from "../ui/Empty";
import { ErrorText } from "../ui/ErrorText";
import { bytes, moment } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { useQuery } from "../ui/useQuery";

const words = text.machines;

/** The machines that run agents. */
export default function Machines() {
  const found = useQuery(useCallback(() => get<MachineList>("/api/machines"), []));
  const machines = found.value?.machines ?? [];
  const alarms = found.value?.alarms ?? [];
  return (
    <div className={css.layout.page}>
      <PageHead title={words.title} />
      <ErrorText error={found.error} />
      {alarms.map((alarm) => (
        <ErrorText key={alarm.hub + alarm.code} error={words.alarms[alarm.code](alarm.hub)} />
      ))}
      {machines.map((machine) => (
        <section key={machine.name} className={css.card.card}>
          <div className={css.layout.buttons}>
            <strong>{machine.name}</strong>
            <span className={css.badge.badge} data-tone={machine.connected ? "good" : "bad"}>
              <span className={css.badge.dot} aria-hidden="true" />
              {machine.connected ? words.connected : words.notConnected}
            </span>
          </div>
          <p className={css.texts.muted}>{factsOf(machine).join(" · ")}</p>
        </section>
      ))}
      {!machines.length && !found.loading && !found.error && (
        <Empty icon={Server} title={words.none}>
          {words.noneHint}
        </Empty>
      )}
      <p className={css.texts.hint}>
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
    memory ? words.free(bytes(memory)) : "",
    load === undefined || load === null ? "" : words.load(load.toFixed(1)),
    since ? words.since(moment(since)) : "",
  ].filter(Boolean);
}
