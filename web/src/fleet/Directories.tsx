import { useCallback } from "react";
import { get } from "../api/http";
import type { components } from "../api/schema";
import { plural } from "../ui/format";
import { useHub } from "../ui/useHub";

type Folders = components["schemas"]["Folders"];

/** The folders of a machine, below those that the hub's configuration allows. */
export function Directories(props: {
  machine: string;
  at: string | undefined;
  onGo: (path: string | undefined) => void;
}) {
  const { machine, at, onGo } = props;
  const found = useHub(
    useCallback(() => {
      const path = `/api/machines/${encodeURIComponent(machine)}/directories`;
      return get<Folders>(path, { path: at || undefined });
    }, [machine, at]),
  );
  const here = found.value;
  const folders = here?.folders ?? [];
  return (
    <section className="directories" aria-label="Folders" aria-busy={found.loading}>
      <header>
        <button
          type="button"
          className="small ghost"
          disabled={!at}
          onClick={() => onGo(here?.parent ?? undefined)}
        >
          Up
        </button>
        <code>{here?.path ?? "where agents may work"}</code>
      </header>
      {found.error ? (
        <p className="error" role="alert">
          {found.error}
        </p>
      ) : (
        <ul>
          {folders.map((folder) => (
            <li key={folder.path}>
              <button type="button" className="ghost" onClick={() => onGo(folder.path)}>
                {here?.path ? folder.name : folder.path}
                {folder.repository && <span className="tag">git</span>}
              </button>
            </li>
          ))}
          {!folders.length && !found.loading && (
            <li className="why">There are no folders in it.</li>
          )}
        </ul>
      )}
      {(here?.left_out ?? 0) > 0 && (
        <p className="why">{plural(here?.left_out ?? 0, "folder")} more; type the path.</p>
      )}
    </section>
  );
}
