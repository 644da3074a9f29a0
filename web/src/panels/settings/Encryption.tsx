import { useCallback } from "react";
import { get } from "../../api/http";
import type { components } from "../../api/schema";
import { text } from "../../text";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { useQuery } from "../../ui/useQuery";
import { type Note, pageNote, wayNotes } from "./encryption";
import styles from "./settings.module.css";

type Hub = components["schemas"]["HubShape"];

const words = text.settings;
const WAYS = [
  ["files", words.wayFiles, words.wayFilesHow, words.wayFilesCommand],
  ["tailscale", words.wayTailscale, words.wayTailscaleHow, words.wayTailscaleCommand],
  ["proxy", words.wayProxy, words.wayProxyHow, words.wayProxyCommand],
] as const;

/** Whether the way to the hub is encrypted, and the three ways to have that. */
export function Encryption() {
  const found = useQuery(useCallback(() => get<Hub>("/api/hub"), []));
  const https = found.value?.reach?.https;
  return (
    <section className={css.card.card} aria-labelledby="encryption">
      <h2 id="encryption">{words.encryption}</h2>
      <Notes of={[pageNote(location.protocol, location.hostname)]} />
      <ErrorText error={found.error} />
      <h3 className={styles.heading}>{words.ways}</h3>
      <dl className={styles.ways}>
        {WAYS.map(([way, name, how, command]) => (
          <div key={way}>
            <dt>{name}</dt>
            <dd>
              {https && <Notes of={wayNotes(way, https, location.protocol, location.hostname)} />}
              <p>{how}</p>
              <pre>{command}</pre>
            </dd>
          </div>
        ))}
      </dl>
      {https?.trust && (
        <p>
          <a href="/trust">{words.trustPage}</a>
        </p>
      )}
    </section>
  );
}

function Notes({ of }: { of: readonly Note[] }) {
  return (
    <ul className={styles.notes}>
      {of.map((note) => (
        <li key={note.text} data-tone={note.tone}>
          {note.text}
        </li>
      ))}
    </ul>
  );
}
