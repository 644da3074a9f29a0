import type { Session } from "../api/types";
import type { OpenSession } from "../state/appState";
import { text } from "../text";
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

const PANELS = { files: Files, tasks: Tasks, context: Context, mcp: Mcp, raw: Raw } as const;
type Name = keyof typeof PANELS;

const isName = (name: string): name is Name => Object.hasOwn(PANELS, name);

/** The panel beside a session: one of several views of it, named in the address. */
export default function Panel(
  props: PanelProps & { name: string; onChoose: (name: string) => void; onClose: () => void },
) {
  const name = isName(props.name) ? props.name : "files";
  const Shown = PANELS[name];
  return (
    <section className={styles.panel} aria-label={text.session.panels}>
      <header>
        <div role="tablist" aria-label={text.session.panelsLabel}>
          {(Object.keys(PANELS) as Name[]).map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              id={`tab-${one}`}
              className="small ghost"
              aria-selected={one === name}
              aria-controls="panel-body"
              onClick={() => props.onChoose(one)}
            >
              {text.session.panelTabs[one]}
            </button>
          ))}
        </div>
        <span className="spread" />
        <button
          type="button"
          className="small ghost"
          aria-label={text.session.closePanel}
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
