import { Search as SearchIcon, SearchX } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { get } from "../api/http";
import { nameOf } from "../state/sessions";
import { useAppState } from "../state/store";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { Empty } from "../ui/Empty";
import { ErrorText } from "../ui/ErrorText";
import { moment } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { useAction } from "../ui/useAction";
import styles from "./search.module.css";

interface Hit {
  session: string;
  seq: number;
  at: number;
  kind: string;
  tool?: string | null;
  name: string;
  snippet: { text: string; ranges: [number, number][] };
}
interface Hits {
  hits: Hit[];
  next: number | null;
}

const words = catalogue.search;

/** A snippet in pieces, with the matches marked. Ranges count code points. */
export function pieces(snippet: Hit["snippet"]): [string, boolean][] {
  const letters = [...snippet.text];
  const found: [string, boolean][] = [];
  let last = 0;
  for (const [begin, end] of snippet.ranges) {
    if (begin < last || end > letters.length) continue;
    if (begin > last) found.push([letters.slice(last, begin).join(""), false]);
    found.push([letters.slice(begin, end).join(""), true]);
    last = end;
  }
  if (last < letters.length) found.push([letters.slice(last).join(""), false]);
  return found;
}

/** Without the marks of Markdown around words: a hit is a few words, and not a text with a form. */
export function withoutMarks(words: string): string {
  return words
    .replace(/^ {0,3}(?:#{1,6}|>) +/gm, "")
    .replace(/\*\*|~~|`+/g, "")
    .replace(/\[([^\]\n]*)\]\([^)\s]*\)/g, "$1");
}

/** Search over the history of all sessions. */
export default function Search() {
  const sessions = useAppState((state) => state.sessions);
  const [asked, setAsked] = useState<Record<string, string>>();
  const [hits, setHits] = useState<Hit[]>();
  const [next, setNext] = useState<number | null>(null);
  const action = useAction();
  const find = (query: Record<string, string>, before?: number): void =>
    void action.run(async () => {
      const found = await get<Hits>("/api/search", { ...query, before, limit: 30 });
      setHits((known) => (before === undefined ? found.hits : [...(known ?? []), ...found.hits]));
      setNext(found.next ?? null);
    });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget)].map(([key, value]) => [
      key,
      String(value).trim(),
    ]);
    const query = Object.fromEntries(given.filter(([, value]) => value)) as Record<string, string>;
    const days = { since: "since" in query ? String(Date.parse(query.since ?? "")) : "" };
    if (days.since) query.since = days.since;
    setAsked(query);
    find(query);
  };
  return (
    <div className={css.layout.page}>
      <PageHead title={words.title} />
      <form className={styles.form} onSubmit={submit}>
        <input
          name="q"
          type="search"
          aria-label={words.words}
          placeholder={words.example}
          required
        />
        <input name="project" aria-label={words.project} placeholder={words.projectExample} />
        <input name="tool" aria-label={words.tool} placeholder={words.tool} />
        <select name="kind" aria-label={words.kind} defaultValue="">
          <option value="">{words.kinds.all}</option>
          <option value="prompt">{words.kinds.prompt}</option>
          <option value="answer">{words.kinds.answer}</option>
          <option value="tool">{words.kinds.tool}</option>
        </select>
        <input name="since" type="date" aria-label={words.since} />
        <button type="submit" className={css.button.primary}>
          {words.search}
        </button>
      </form>
      <ErrorText error={action.error} />
      <ol className={styles.hits} aria-label={words.results}>
        {hits?.map((hit) => {
          const session = sessions.get(hit.session);
          return (
            <li key={`${hit.session}/${hit.seq}`}>
              <Link href={`/s/${encodeURIComponent(hit.session)}?m=${hit.seq}`}>
                {session ? nameOf(session) : hit.name || hit.session}
              </Link>
              <span className={css.texts.muted}>
                {" "}
                {hit.kind}
                {hit.tool && ` · ${hit.tool}`} · {moment(hit.at)}
              </span>
              <p>
                {pieces(hit.snippet).map(([text, marked], index) =>
                  marked ? (
                    <mark key={index}>{text}</mark>
                  ) : (
                    <span key={index}>{withoutMarks(text)}</span>
                  ),
                )}
              </p>
            </li>
          );
        })}
      </ol>
      {hits?.length === 0 && <Empty icon={SearchX} title={words.none} />}
      {hits === undefined && (
        <Empty icon={SearchIcon} title={words.prompt}>
          {words.promptHint}
        </Empty>
      )}
      {next !== null && asked && (
        <button type="button" disabled={action.busy} onClick={() => find(asked, next)}>
          {words.more}
        </button>
      )}
    </div>
  );
}
