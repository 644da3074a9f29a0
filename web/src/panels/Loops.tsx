import { useCallback, useState } from "react";
import { get, post } from "../api/http";
import type { components } from "../api/schema";
import { Markdown } from "../markdown/Markdown";
import { useAppState } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { cost, moment, plural } from "../ui/format";
import { Marked } from "../ui/Marked";
import { PageHead } from "../ui/PageHead";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";

type Loop = components["schemas"]["LoopShape"];

const WORDS: Record<Loop["state"], [string, string]> = {
  running: ["running", "work"],
  paused: ["paused", "wait"],
  waiting: ["waiting for the usage limit", "wait"],
  stopped: ["stopped", "idle"],
  cut_off: ["not running", "bad"],
};

/** The loops of the hub: their states, their reports, and the buttons to control them. */
export default function Loops() {
  const found = useQuery(useCallback(() => get<{ loops: Loop[] }>("/api/loops"), []));
  const loops = found.value?.loops ?? [];
  return (
    <div className="page">
      <PageHead title="Loops" />
      <div className="buttons">
        <button type="button" className="small" onClick={found.reload} disabled={found.loading}>
          Reload
        </button>
      </div>
      <ErrorText error={found.error} />
      {loops.map((loop) => (
        <Card key={loop.loop} loop={loop} onChange={found.reload} />
      ))}
      {!loops.length && !found.loading && !found.error && <p className="muted">No loops yet.</p>}
      <p className="hint">
        To start one, run <code>quarterdeck loop run TASK --until-command COMMAND</code>
      </p>
    </div>
  );
}

function Card({ loop, onChange }: { loop: Loop; onChange: () => void }) {
  const maySteer = useAppState((state) => state.me?.rights.includes("steer") ?? false);
  const [shown, setShown] = useState(false);
  const action = useAction();
  const [word, tone] = WORDS[loop.state];
  const control = (name: "pause" | "resume" | "stop"): void => {
    void action
      .run(() => post(`/api/loops/${encodeURIComponent(loop.loop)}/${name}`))
      .then((done) => done && onChange());
  };
  return (
    <section className="card" aria-label={loop.title}>
      <div className="buttons">
        <strong>
          <Marked text={loop.title} />
        </strong>
        <span className="badge" data-tone={loop.done ? "good" : tone}>
          <span className="dot" aria-hidden="true" />
          {loop.done ? "done" : word}
        </span>
      </div>
      <p className="muted">
        {plural(loop.turns, "turn")} of at most {loop.most_turns} · {cost(loop.cost_usd)} ·{" "}
        {moment(loop.created * 1000)}
        {loop.by && ` · ${loop.by}`}
      </p>
      {loop.text && (
        <p>
          <Marked text={loop.text} />
        </p>
      )}
      <div className="buttons">
        {maySteer && loop.state !== "stopped" && loop.state !== "cut_off" && (
          <>
            {loop.state === "paused" ? (
              <button type="button" disabled={action.busy} onClick={() => control("resume")}>
                Resume
              </button>
            ) : (
              <button type="button" disabled={action.busy} onClick={() => control("pause")}>
                Pause
              </button>
            )}
            <button type="button" disabled={action.busy} onClick={() => control("stop")}>
              Stop
            </button>
          </>
        )}
        <button type="button" aria-expanded={shown} onClick={() => setShown(!shown)}>
          Report
        </button>
      </div>
      <ErrorText error={action.error} />
      {shown && <Report id={loop.loop} />}
    </section>
  );
}

function Report({ id }: { id: string }) {
  const path = `/api/loops/${encodeURIComponent(id)}/text`;
  const found = useQuery(useCallback(() => get<{ text: string }>(path), [path]));
  return (
    <>
      <ErrorText error={found.error} />
      {found.value && <Markdown text={found.value.text} careful />}
    </>
  );
}
