import { useCallback } from "react";
import { get } from "../api/http";
import type { components } from "../api/schema";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { useQuery } from "../ui/useQuery";
import styles from "./newSession.module.css";

type Folders = components["schemas"]["Folders"];

/** The folders of a machine, below those that the hub's configuration allows. */
export function DirectoryBrowser(props: {
  machine: string;
  at: string | undefined;
  onGo: (path: string | undefined) => void;
}) {
  const { machine, at, onGo } = props;
  const found = useQuery(
    useCallback(() => {
      const path = `/api/machines/${encodeURIComponent(machine)}/directories`;
      return get<Folders>(path, { path: at || undefined });
    }, [machine, at]),
  );
  const here = found.value;
  const folders = here?.folders ?? [];
  return (
    <section
      className={styles.browser}
      aria-label={text.newSession.folders}
      aria-busy={found.loading}
    >
      <header>
        <button
          type="button"
          className={`${css.button.small} ${css.button.ghost}`}
          disabled={!at}
          onClick={() => onGo(here?.parent ?? undefined)}
        >
          {text.newSession.up}
        </button>
        <code>{here?.path ?? text.newSession.allowedFolders}</code>
      </header>
      {found.error ? (
        <ErrorText error={found.error} />
      ) : (
        <ul>
          {folders.map((folder) => (
            <li key={folder.path}>
              <button type="button" className={css.button.ghost} onClick={() => onGo(folder.path)}>
                {here?.path ? folder.name : folder.path}
                {folder.repository && <span className={styles.tag}>{text.newSession.git}</span>}
              </button>
            </li>
          ))}
          {!folders.length && !found.loading && (
            <li className={css.texts.muted}>{text.newSession.noFolders}</li>
          )}
        </ul>
      )}
      {(here?.left_out ?? 0) > 0 && (
        <p className={css.texts.muted}>{text.newSession.typePath(here?.left_out ?? 0)}</p>
      )}
    </section>
  );
}
