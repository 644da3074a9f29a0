import { Repeat, RotateCw } from "lucide-react";
import { useCallback, useState } from "react";
import { get, post } from "../api/http";
import type { components } from "../api/schema";
import { Markdown } from "../markdown/Markdown";
import { useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Empty } from "../ui/Empty";
import { ErrorText } from "../ui/ErrorText";
import { cost, moment } from "../ui/format";
import { Icon } from "../ui/Icon";
import { Marked } from "../ui/Marked";
import { PageHead } from "../ui/PageHead";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";

type Loop = components["schemas"]["LoopShape"];

const words = text.loops;
const TONES: Record<Loop["state"], string> = {
  running: "work",
  paused: "wait",
  waiting: "wait",
  stopped: "idle",
  cut_off: "bad",
};

/** The loops of the hub: their states, their reports, and the buttons to control them. */
export default function Loops() {
  const found = useQuery(useCallback(() => get<{ loops: Loop[] }>("/api/loops"), []));
  const loops = found.value?.loops ?? [];
  return (
    <div className={css.layout.page}>
      <PageHead title={words.title}>
        <button
          type="button"
          className={css.button.small}
          onClick={found.reload}
          disabled={found.loading}
        >
          <Icon of={RotateCw} size={14} />
          {words.reload}
        </button>
      </PageHead>
      <ErrorText error={found.error} />
      {loops.map((loop) => (
        <Card key={loop.loop} loop={loop} onChange={found.reload} />
      ))}
      {!loops.length && !found.loading && !found.error && (
        <Empty icon={Repeat} title={words.none}>
          {words.noneHint} {words.start} <code>{words.startCommand}</code>
        </Empty>
      )}
      {loops.length > 0 && (
        <p className={css.texts.hint}>
          {words.start} <code>{words.startCommand}</code>
        </p>
      )}
    </div>
  );
}

function Card({ loop, onChange }: { loop: Loop; onChange: () => void }) {
  const maySteer = useAppState((state) => state.me?.rights.includes("steer") ?? false);
  const [shown, setShown] = useState(false);
  const action = useAction();
  const control = (name: "pause" | "resume" | "stop"): void => {
    void action
      .run(() => post(`/api/loops/${encodeURIComponent(loop.loop)}/${name}`))
      .then((done) => done && onChange());
  };
  return (
    <section className={css.card.card} aria-label={loop.title}>
      <div className={css.layout.buttons}>
        <strong>
          <Marked text={loop.title} />
        </strong>
        <span className={css.badge.badge} data-tone={loop.done ? "good" : TONES[loop.state]}>
          <span className={css.badge.dot} aria-hidden="true" />
          {loop.done ? words.done : words.states[loop.state]}
        </span>
      </div>
      <p className={css.texts.muted}>
        {words.turns(loop.turns, loop.most_turns)} · {cost(loop.cost_usd)} ·{" "}
        {moment(loop.created * 1000)}
        {loop.by && ` · ${loop.by}`}
      </p>
      {loop.text && (
        <p>
          <Marked text={loop.text} />
        </p>
      )}
      <div className={css.layout.buttons}>
        {maySteer && loop.state !== "stopped" && loop.state !== "cut_off" && (
          <>
            {loop.state === "paused" ? (
              <button type="button" disabled={action.busy} onClick={() => control("resume")}>
                {words.resume}
              </button>
            ) : (
              <button type="button" disabled={action.busy} onClick={() => control("pause")}>
                {words.pause}
              </button>
            )}
            <button type="button" disabled={action.busy} onClick={() => control("stop")}>
              {words.stop}
            </button>
          </>
        )}
        <button type="button" aria-expanded={shown} onClick={() => setShown(!shown)}>
          {words.report}
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
