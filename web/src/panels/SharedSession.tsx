import { useEffect, useState } from "react";
import { toApiError } from "../api/http";
import type { components } from "../api/schema";
import type { Problem, Stored } from "../api/types";
import { Timeline } from "../session/Timeline";
import type { OpenSession } from "../state/appState";
import { EMPTY_STORY, foldEvents, type Story } from "../state/story";
import { text } from "../text";
import { css } from "../ui/css";
import { moment } from "../ui/format";
import { StateBadge } from "../ui/StateBadge";
import styles from "./shared.module.css";

type Shared = components["schemas"]["SharedSession"];

const words = text.settings;
const PAGE = 1000;
const LOOK_MS = 4000;
/** The name of the session here: its true id is not told, and nothing can be asked about it. */
const SESSION = "shared";

/** A session as a read-only link shows it. The link's secret is in the fragment, which is never sent. */
export default function SharedSession() {
  const [shown, setShown] = useState<{ session: Shared; story: Story }>();
  const [error, setError] = useState("");
  useEffect(() => {
    const secret = location.hash.slice(1);
    let timer: ReturnType<typeof setTimeout>;
    let current = true;
    let story = EMPTY_STORY;
    let after = 0;
    const look = async (): Promise<void> => {
      try {
        const session = await read<Shared>("/shared/session", secret);
        while (after < session.head && current) {
          const path = `/shared/events?after=${after}&limit=${PAGE}`;
          const page = await read<{ events: Stored[]; next: number | null }>(path, secret);
          story = foldEvents(story, page.events.map(asShared));
          after = page.next ?? Math.max(session.head, page.events.at(-1)?.seq ?? 0);
        }
        if (!current) return;
        setShown({ session, story });
        setError("");
      } catch (failure) {
        if (!current) return;
        const status = failure instanceof Error && "status" in failure ? failure.status : 0;
        if (status === 401 || status === 404) {
          setShown(undefined);
          setError(words.sharedGone);
          return; // it will not come back
        }
        setError(failure instanceof Error ? failure.message : String(failure));
      }
      timer = setTimeout(() => void look(), LOOK_MS);
    };
    void look();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, []);
  if (!shown) {
    return (
      <main className={css.empty.page}>
        <h1>{words.shared}</h1>
        <p role="status">{error || words.sharedLoading}</p>
      </main>
    );
  }
  const opened: OpenSession = {
    story: shown.story,
    older: false,
    loading: false,
    error: undefined,
  };
  const { session } = shown;
  return (
    <main className={styles.page}>
      <header>
        <h1>{session.name || words.shared}</h1>
        <StateBadge state={session.state} />
        <p className={css.texts.muted}>
          {session.expires ? words.sharedUntil(moment(session.expires * 1000)) : words.shared}
        </p>
        {error && <p role="alert">{error}</p>}
      </header>
      <Timeline session={SESSION} opened={opened} />
    </main>
  );
}

/** The parts of the story ask for more by the session's id, and must not ask for this one. */
const asShared = (stored: Stored): Stored => ({ ...stored, session: SESSION });

async function read<T>(path: string, secret: string): Promise<T> {
  const response = await fetch(path, {
    credentials: "omit",
    headers: { Accept: "application/json", Authorization: `Bearer ${secret}` },
  });
  if (!response.ok) throw toApiError((await response.json()) as Problem);
  return (await response.json()) as T;
}
