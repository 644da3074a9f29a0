import { lazy, Suspense, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { wordsOf } from "../api/http";
import type { Session } from "../api/types";
import { archive } from "../fleet/Sidebar";
import { detailOf, folderOf, nameOf } from "../state/fleet";
import { store, useDeck, useRights } from "../state/store";
import { Boundary } from "../ui/Boundary";
import { takeFocus } from "../ui/focus";
import { cost } from "../ui/format";
import { Marked } from "../ui/Marked";
import { withMarks } from "../ui/marks";
import { StateBadge } from "../ui/StateBadge";
import { useEscape } from "../ui/useEscape";
import { useMenu } from "../ui/useMenu";
import { Composer } from "./Composer";
import { Folder } from "./folder";
import { Timeline } from "./Timeline";

const Panel = lazy(() => import("../panels/Panel"));

/** One session in full. */
export function SessionPage({ id }: { id: string }) {
  const session = useDeck((deck) => deck.fleet.get(id));
  const opened = useDeck((deck) => deck.opened.get(id));
  const known = useDeck((deck) => deck.known);
  const [panel, setPanel] = useState(false);
  useEffect(() => store.open(id), [id]);
  useEffect(() => {
    if (session?.head) store.see(id);
  }, [id, session?.head]);
  if (!session) {
    return (
      <div className="empty-state">
        <p>{known ? "There is no such session any more." : "Looking for the session …"}</p>
        {known && <Link href="/">To the sessions</Link>}
      </div>
    );
  }
  return (
    <Folder value={folderOf(session)}>
      <div className="session-page" data-panel={panel || undefined}>
        <div className="column">
          <Head session={session} panel={panel} onPanel={() => setPanel(!panel)} />
          {opened?.error && (
            <p className="note" data-tone="bad" role="alert">
              {opened.error}
            </p>
          )}
          {opened && (
            <Boundary key={id} what="story" raw={opened}>
              <Timeline session={id} opened={opened} />
            </Boundary>
          )}
          {opened && (
            <Boundary key={`composer:${id}`} what="field to write in" raw={session}>
              <Composer session={session} opened={opened} />
            </Boundary>
          )}
        </div>
        {panel && opened && (
          <Suspense fallback={<div className="panel" />}>
            <Boundary what="panel" raw={session}>
              <Panel session={session} opened={opened} onClose={() => setPanel(false)} />
            </Boundary>
          </Suspense>
        )}
      </div>
    </Folder>
  );
}

function Head(props: { session: Session; panel: boolean; onPanel: () => void }) {
  const { session } = props;
  const [naming, setNaming] = useState(false);
  const [error, setError] = useState("");
  const [, go] = useLocation();
  const more = useMenu();
  useEscape(naming, () => setNaming(false));
  const rights = useRights();
  const steer = rights.includes("steer");
  const manage = rights.includes("manage");
  const chosen = (does: () => void): (() => void) => {
    return () => {
      more.close();
      does();
    };
  };
  const command = async (name: string, members: Record<string, unknown> = {}): Promise<string> => {
    setError("");
    try {
      return (await store.command(name, { session: session.session, ...members })).session;
    } catch (failure) {
      setError(wordsOf(failure));
      return "";
    }
  };
  const fork = async (): Promise<void> => {
    const made = await command("session.fork");
    if (made) go(`/s/${encodeURIComponent(made)}`);
  };
  return (
    <header className="session-head">
      <Link href="/" className="back" aria-label="To the sessions">
        ‹
      </Link>
      <div className="titles">
        {naming ? (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const name = String(new FormData(event.currentTarget).get("name") ?? "").trim();
              if (name) void command("session.rename", { name });
              setNaming(false);
            }}
          >
            <input ref={takeFocus} name="name" aria-label="Name" defaultValue={nameOf(session)} />
            <button type="submit" className="small">
              Save
            </button>
          </form>
        ) : (
          <h1>
            <Marked text={nameOf(session)} />
          </h1>
        )}
        <p className="where">
          <span className="path" title={withMarks(folderOf(session))}>
            <Marked text={folderOf(session)} code />
          </span>
          {session.version && <span> · Claude Code {session.version}</span>}
          {session.cost_usd > 0 && <span> · {cost(session.cost_usd)}</span>}
        </p>
      </div>
      <div className="state">
        <StateBadge state={session.state} />
        {detailOf(session) && (
          <span className="why">
            <Marked text={detailOf(session)} />
          </span>
        )}
      </div>
      <div className="buttons">
        {steer && session.run === null && (
          <button type="button" className="small" onClick={() => void command("session.resume")}>
            Resume
          </button>
        )}
        {steer && session.run !== null && (
          <button type="button" className="small" onClick={() => void command("session.stop")}>
            Stop
          </button>
        )}
        <details className="more" ref={more.place} onToggle={more.toggled}>
          <summary className="button small" aria-label="More">
            ⋯
          </summary>
          <div className="menu">
            {steer && (
              <button type="button" onClick={chosen(() => setNaming(true))}>
                Rename
              </button>
            )}
            {manage && (
              <button type="button" onClick={chosen(() => void fork())}>
                Fork
              </button>
            )}
            {steer && (
              <button type="button" onClick={chosen(() => archive(session))}>
                {session.archived ? "Take out of the archive" : "Archive"}
              </button>
            )}
            {manage && session.run === null && (
              <button
                type="button"
                onClick={() => {
                  if (confirm("Forget this session, with all that was said in it?")) {
                    void command("session.delete").then((gone) => gone && go("/"));
                  }
                }}
              >
                Delete …
              </button>
            )}
          </div>
        </details>
        <button type="button" className="small" aria-pressed={props.panel} onClick={props.onPanel}>
          Panels
        </button>
      </div>
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
    </header>
  );
}
