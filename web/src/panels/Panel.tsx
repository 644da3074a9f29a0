import type { Session } from "../api/types";
import type { OpenSession } from "../state/appState";
import { text } from "../text";
import { css } from "../ui/css";
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

/** For those who look behind the story: its tab is there only while it is open. */
const HIDDEN: Name = "raw";

/** The panel beside a session: one of several views of it, named in the address. */
export default function Panel(
  props: PanelProps & { name: string; onChoose: (name: string) => void; onClose: () => void },
) {
  const name = isName(props.name) ? props.name : "files";
  const Shown = PANELS[name];
  const tabs = (Object.keys(PANELS) as Name[]).filter((one) => one !== HIDDEN || one === name);
  return (
    <section className={styles.panel} aria-label={text.session.panels}>
      <header>
        <div role="tablist" aria-label={text.session.panelsLabel}>
          {tabs.map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              id={`tab-${one}`}
              className={`${css.button.small} ${css.button.ghost}`}
              aria-selected={one === name}
              aria-controls="panel-body"
              onClick={() => props.onChoose(one)}
            >
              {text.session.panelTabs[one]}
            </button>
          ))}
        </div>
        <span className={css.layout.spread} />
        <button
          type="button"
          className={`${css.button.small} ${css.button.ghost}`}
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
