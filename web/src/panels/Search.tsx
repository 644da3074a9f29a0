import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { get, wordsOf } from "../api/http";
import { nameOf } from "../state/fleet";
import { useDeck } from "../state/store";
import { moment } from "../ui/format";
import { PageHead } from "../ui/PageHead";

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

/** A snippet in pieces, those that were looked for marked. Ranges count code points. */
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

/** Search over all that was ever said. */
export default function Search() {
  const fleet = useDeck((deck) => deck.fleet);
  const [asked, setAsked] = useState<Record<string, string>>();
  const [hits, setHits] = useState<Hit[]>();
  const [next, setNext] = useState<number | null>(null);
  const [error, setError] = useState("");
  const find = async (query: Record<string, string>, before?: number): Promise<void> => {
    setError("");
    try {
      const found = await get<Hits>("/api/search", { ...query, before, limit: 30 });
      setHits((known) => (before === undefined ? found.hits : [...(known ?? []), ...found.hits]));
      setNext(found.next ?? null);
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
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
    void find(query);
  };
  return (
    <div className="page">
      <PageHead title="Search" />
      <form className="search" onSubmit={submit}>
        <input
          name="q"
          type="search"
          aria-label="Words"
          placeholder='Words, "a phrase", begin*, -without'
          required
        />
        <input name="project" aria-label="Project" placeholder="Project or folder" />
        <input name="tool" aria-label="Tool" placeholder="Tool" />
        <select name="kind" aria-label="Kind" defaultValue="">
          <option value="">everything</option>
          <option value="prompt">prompts</option>
          <option value="answer">answers</option>
          <option value="tool">tool calls</option>
        </select>
        <input name="since" type="date" aria-label="Since" />
        <button type="submit" className="primary">
          Search
        </button>
      </form>
      {error && (
        <p className="error" role="alert">
          {error}
        </p>
      )}
      <ol className="hits" aria-label="Found">
        {hits?.map((hit) => {
          const session = fleet.get(hit.session);
          return (
            <li key={`${hit.session}/${hit.seq}`}>
              <Link href={`/s/${encodeURIComponent(hit.session)}`}>
                {session ? nameOf(session) : hit.name || hit.session}
              </Link>
              <span className="why">
                {" "}
                {hit.kind}
                {hit.tool && ` · ${hit.tool}`} · {moment(hit.at)}
              </span>
              <p>
                {pieces(hit.snippet).map(([text, marked], index) =>
                  marked ? <mark key={index}>{text}</mark> : <span key={index}>{text}</span>,
                )}
              </p>
            </li>
          );
        })}
      </ol>
      {hits?.length === 0 && <p className="why">Nothing was found.</p>}
      {next !== null && asked && (
        <button type="button" onClick={() => void find(asked, next)}>
          More
        </button>
      )}
    </div>
  );
}
