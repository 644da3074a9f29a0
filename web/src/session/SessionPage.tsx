import { useCallback, useEffect, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { lastSeq } from "../state/readMarks";
import { folderOf } from "../state/sessions";
import { store, useAppState } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { later } from "../ui/later";
import { Composer } from "./Composer";
import { FindBar, useFindKey } from "./FindBar";
import { OpenSession, WorkingDirectory } from "./relativePath";
import { SessionHeader } from "./SessionHeader";
import styles from "./sessionPage.module.css";
import { eventOf, goToEvent } from "./storyTarget";
import { Timeline } from "./Timeline";

const Panel = later(() => import("../panels/Panel").then((module) => module.default), <div />);

/** What **Panels** opens: it asks nothing of the machine. */
const FIRST_PANEL = "tasks";

/** One session in full; or only one of its earlier conversations, to be read. */
export function SessionPage({ id, conversation }: { id: string; conversation?: string }) {
  const session = useAppState((state) => state.sessions.get(id));
  const opened = useAppState((state) => state.open.get(id));
  const listed = useAppState((state) => state.listed);
  const [place, go] = useLocation();
  const search = useSearch();
  const panel = new URLSearchParams(search).get("panel") ?? "";
  const showPanel = useCallback(
    (name: string): void => {
      const params = new URLSearchParams();
      if (name) params.set("panel", name);
      go(name ? `${place}?${params}` : place, { replace: true });
    },
    [go, place],
  );
  const [finding, setFinding] = useState(false);
  useFindKey(useCallback(() => setFinding(true), []));
  const wanted = eventOf(search);
  useEffect(() => {
    if (wanted !== undefined) goToEvent({ session: id, seq: wanted });
  }, [id, wanted]);
  useEffect(() => store.open.open(id), [id]);
  const last = useAppState((state) => lastSeq(state, id));
  useEffect(() => {
    if (last) store.markRead(id);
  }, [id, last]);
  if (!session) {
    return (
      <div className={css.empty.page}>
        {listed ? <h1>{text.session.missing}</h1> : <p>{text.session.loading}</p>}
        {listed && (
          <Link href="/" className={css.button.button ?? ""}>
            {text.session.back}
          </Link>
        )}
      </div>
    );
  }
  return (
    <WorkingDirectory value={folderOf(session)}>
      <div className={styles.page} data-panel={panel ? true : undefined}>
        <div className={styles.column}>
          <SessionHeader
            session={session}
            panel={panel !== ""}
            onPanel={(name) => showPanel(name ?? (panel ? "" : FIRST_PANEL))}
            onFind={() => setFinding(true)}
          />
          {finding && opened && (
            <FindBar session={id} story={opened.story} onClose={() => setFinding(false)} />
          )}
          {opened?.error && (
            <p className={css.note.note} data-tone="bad" role="alert">
              {opened.error}
            </p>
          )}
          {opened && (
            <ErrorBoundary key={id} what={text.parts.conversation} raw={opened}>
              <OpenSession value={id}>
                <Timeline
                  key={conversation}
                  session={id}
                  opened={opened}
                  conversation={conversation}
                />
              </OpenSession>
            </ErrorBoundary>
          )}
          {conversation !== undefined && (
            <p className={css.note.note}>
              {text.session.conversationEnded}{" "}
              <Link href={`/s/${encodeURIComponent(id)}`}>{text.session.currentConversation}</Link>
            </p>
          )}
          {opened && conversation === undefined && (
            <ErrorBoundary key={`composer:${id}`} what={text.parts.composer} raw={session}>
              <Composer session={session} opened={opened} />
            </ErrorBoundary>
          )}
        </div>
        {panel && opened && (
          <ErrorBoundary what={text.parts.panel} raw={session}>
            <Panel
              session={session}
              opened={opened}
              name={panel}
              onChoose={showPanel}
              onClose={() => showPanel("")}
            />
          </ErrorBoundary>
        )}
      </div>
    </WorkingDirectory>
  );
}
