import { lazy, Suspense, useEffect, useState } from "react";
import { Link } from "wouter";
import { lastSeq } from "../state/readMarks";
import { folderOf } from "../state/sessions";
import { store, useAppState } from "../state/store";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { Composer } from "./Composer";
import { OpenSession, WorkingDirectory } from "./relativePath";
import { SessionHeader } from "./SessionHeader";
import styles from "./sessionPage.module.css";
import { Timeline } from "./Timeline";

const Panel = lazy(() => import("../panels/Panel"));

/** One session in full; or only one of its earlier conversations, to be read. */
export function SessionPage({ id, conversation }: { id: string; conversation?: string }) {
  const session = useAppState((state) => state.sessions.get(id));
  const opened = useAppState((state) => state.open.get(id));
  const listed = useAppState((state) => state.listed);
  const [panel, setPanel] = useState(false);
  useEffect(() => store.open.open(id), [id]);
  const last = useAppState((state) => lastSeq(state, id));
  useEffect(() => {
    if (last) store.markRead(id);
  }, [id, last]);
  if (!session) {
    return (
      <div className="empty-state">
        <p>{listed ? "This session does not exist, or was deleted." : "Loading …"}</p>
        {listed && <Link href="/">Back to sessions</Link>}
      </div>
    );
  }
  return (
    <WorkingDirectory value={folderOf(session)}>
      <div className={styles.page} data-panel={panel || undefined}>
        <div className={styles.column}>
          <SessionHeader session={session} panel={panel} onPanel={() => setPanel(!panel)} />
          {opened?.error && (
            <p className="note" data-tone="bad" role="alert">
              {opened.error}
            </p>
          )}
          {opened && (
            <ErrorBoundary key={id} what="conversation" raw={opened}>
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
            <p className="note">
              This conversation has ended.{" "}
              <Link href={`/s/${encodeURIComponent(id)}`}>Go to the current one</Link>
            </p>
          )}
          {opened && conversation === undefined && (
            <ErrorBoundary key={`composer:${id}`} what="composer" raw={session}>
              <Composer session={session} opened={opened} />
            </ErrorBoundary>
          )}
        </div>
        {panel && opened && (
          <Suspense fallback={<div />}>
            <ErrorBoundary what="panel" raw={session}>
              <Panel session={session} opened={opened} onClose={() => setPanel(false)} />
            </ErrorBoundary>
          </Suspense>
        )}
      </div>
    </WorkingDirectory>
  );
}
