import { useCallback, useState } from "react";
import { get, logout, post, remove, wordsOf } from "../api/http";
import { useDeck } from "../state/store";
import { moment } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { BACK, Table, TakeBack } from "../ui/Table";
import { useDoing } from "../ui/useDoing";
import { useHub } from "../ui/useHub";
import { choose, setTheme, type Theme, theme, type Wish, wanted } from "../ui/wishes";

const WISHES: Record<Wish, string> = {
  notify: "Tell me when an agent waits and this page is not in sight",
  push: "Tell me on this device even when the deck is closed",
  sound: "Play a sound when an agent waits",
};

interface Token {
  id: string;
  name: string;
  role: string;
  kind: string;
  made: number;
  expires: number | null;
}

/** This browser, and who has access. */
export default function Settings() {
  const me = useDeck((deck) => deck.me);
  const [shown, setShown] = useState(theme());
  return (
    <div className="page">
      <PageHead title="Settings" />
      <section className="card">
        <h2>This browser</h2>
        <label className="field">
          <span>Colours</span>
          <select
            value={shown}
            onChange={(event) => {
              const chosen = event.target.value as Theme;
              setTheme(chosen);
              setShown(chosen);
            }}
          >
            <option value="system">as the system has them</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
        {(Object.keys(WISHES) as Wish[]).map((wish) => (
          <Switch key={wish} wish={wish} />
        ))}
      </section>
      <section className="card">
        <h2>You</h2>
        <p>
          {me?.name} · {me?.role}
        </p>
        <div className="buttons">
          <button type="button" onClick={() => void logout().then(() => location.assign("/login"))}>
            Log out
          </button>
        </div>
      </section>
      {me?.role === "owner" && <Tokens />}
    </div>
  );
}

function Switch({ wish }: { wish: Wish }) {
  const [on, setOn] = useState(wanted(wish));
  const [told, setTold] = useState("");
  return (
    <label className="option">
      <input
        type="checkbox"
        checked={on}
        onChange={(event) => {
          const asked = event.target.checked;
          choose(wish, asked).then(
            (is) => {
              setOn(is);
              setTold(asked && !is ? "The browser does not allow it." : "");
            },
            (failure) => {
              setOn(wanted(wish));
              setTold(wordsOf(failure));
            },
          );
        }}
      />{" "}
      {WISHES[wish]} <span className="error">{told}</span>
    </label>
  );
}

/** Who has access, with a way to give it and to take it back. */
function Tokens() {
  const found = useHub(useCallback(() => get<{ tokens: Token[] }>("/api/tokens"), []));
  const [made, setMade] = useState("");
  const [doing, error] = useDoing();
  const act = async (change: () => Promise<{ token?: string } | undefined>): Promise<void> => {
    if (await doing(async () => setMade((await change())?.token ?? ""))) found.again();
  };
  const revoke = (token: Token): void => {
    if (!confirm(`Take back the access of «${token.name}»?`)) return;
    void act(() => remove(`/api/tokens/${encodeURIComponent(token.id)}`));
  };
  return (
    <section className="card">
      <h2>Access</h2>
      {(found.error || error) && <p className="error">{found.error || error}</p>}
      <Table heads={["name", "role", "kind", "until", BACK]}>
        {found.value?.tokens.map((token) => (
          <tr key={token.id}>
            <td>{token.name}</td>
            <td>{token.role}</td>
            <td>{token.kind}</td>
            <td>{token.expires ? moment(token.expires * 1000) : "for good"}</td>
            <td>
              <TakeBack what={`the access of ${token.name}`} onClick={() => revoke(token)} />
            </td>
          </tr>
        ))}
      </Table>
      <form
        className="buttons"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const wanted = { name: form.get("name"), role: form.get("role") };
          void act(() => post("/api/tokens", wanted));
        }}
      >
        <input
          name="name"
          required
          aria-label="Name of the token"
          placeholder="Name"
          style={{ maxWidth: "12rem" }}
        />
        <select name="role" aria-label="Role of the token" defaultValue="viewer">
          {["owner", "operator", "viewer"].map((role) => (
            <option key={role}>{role}</option>
          ))}
        </select>
        <button type="submit">Make a token</button>
      </form>
      {made && (
        <p role="status">
          It is shown this once: <code className="secret">{made}</code>
        </p>
      )}
    </section>
  );
}
