import { useCallback, useState } from "react";
import { get } from "../../api/http";
import type { components } from "../../api/schema";
import { useAppState } from "../../state/store";
import { text } from "../../text";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { useAction } from "../../ui/useAction";
import { useQuery } from "../../ui/useQuery";
import styles from "./settings.module.css";

type Schemas = components["schemas"];
type Finding = Schemas["FindingShape"];

const words = text.settings;
const TONES: Record<string, string> = {
  ok: "good",
  note: "plain",
  warning: "warn",
  problem: "bad",
};

/** The version of the hub, and what its doctor finds. */
export function HubPart() {
  const owner = useAppState((state) => state.me?.role === "owner");
  const about = useQuery(useCallback(() => get<Schemas["HubShape"]>("/api/hub"), []));
  const [findings, setFindings] = useState<Finding[]>();
  const action = useAction();
  const look = (): void =>
    void action.run(async () =>
      setFindings((await get<Schemas["FindingList"]>("/api/hub/findings")).findings),
    );
  return (
    <section className={css.card.card} aria-labelledby="hub">
      <h2 id="hub">{words.hub}</h2>
      <ErrorText error={about.error || action.error} />
      {about.value && <p>{words.version(about.value.version)}</p>}
      {owner && (
        <div className={css.layout.buttons}>
          <button type="button" disabled={action.busy} onClick={look}>
            {action.busy ? words.checking : words.runDoctor}
          </button>
        </div>
      )}
      {findings && (
        <ul className={styles.notes} aria-live="polite">
          {findings.map((one) => (
            <li key={`${one.topic} ${one.text}`} data-tone={TONES[one.level]}>
              <strong>{one.topic}</strong> · {words.levels[one.level] ?? one.level} · {one.text}
              {one.advice && <p className={css.texts.muted}>{one.advice}</p>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
