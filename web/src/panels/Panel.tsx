import { useState } from "react";
import type { Session } from "../api/types";
import type { OpenSession } from "../state/appState";
import { Context } from "./Context";
import { Files } from "./Files";
import { Mcp } from "./Mcp";
import styles from "./panel.module.css";
import { Raw } from "./Raw";
import { Tasks } from "./Tasks";

export interface PanelProps {
  session: Session;
  opened: OpenSession;
}

const PANELS = { Files, Tasks, Context, MCP: Mcp, Raw } as const;
type Name = keyof typeof PANELS;

/** The panel beside a session: one of several views of it. */
export default function Panel(props: PanelProps & { onClose: () => void }) {
  const [name, setName] = useState<Name>("Files");
  const Shown = PANELS[name];
  return (
    <section className={styles.panel} aria-label="Panels">
      <header>
        <div role="tablist" aria-label="Session panels">
          {(Object.keys(PANELS) as Name[]).map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              id={`tab-${one}`}
              className="small ghost"
              aria-selected={one === name}
              aria-controls="panel-body"
              onClick={() => setName(one)}
            >
              {one}
            </button>
          ))}
        </div>
        <span className="spread" />
        <button
          type="button"
          className="small ghost"
          aria-label="Close panel"
          onClick={props.onClose}
        >
          ✕
        </button>
      </header>
      <div role="tabpanel" id="panel-body" aria-labelledby={`tab-${name}`}>
        <Shown session={props.session} opened={props.opened} />
      </div>
    </section>
  );
}
