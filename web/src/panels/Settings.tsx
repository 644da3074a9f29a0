import { useCallback, useState } from "react";
import { errorText, get, logout, post, remove } from "../api/http";
import { KeySwitch, UndoChoice } from "../asks/KeysHelp";
import { showKeys } from "../asks/showKeys";
import { useAppState } from "../state/store";
import { ErrorText } from "../ui/ErrorText";
import { moment } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import {
  isEnabled,
  type Preference,
  setPreference,
  setTheme,
  type Theme,
  theme,
} from "../ui/preferences";
import { ACTIONS, RevokeButton, Table } from "../ui/Table";
import { useAction } from "../ui/useAction";
import { useQuery } from "../ui/useQuery";

const PREFERENCES: Record<Preference, string> = {
  notify: "Notify me when an agent is waiting and this page is hidden",
  push: "Notify me on this device even when Quarterdeck is closed",
  sound: "Play a sound when an agent is waiting",
};

interface Token {
  id: string;
  name: string;
  role: string;
  kind: string;
  /** What the token is used by, such as `telegram:1234`. */
  label: string;
  made: number;
  expires: number | null;
}

/** This browser, and who has access. */
export default function Settings() {
  const me = useAppState((state) => state.me);
  const [shown, setShown] = useState(theme());
  return (
    <div className="page">
      <PageHead title="Settings" />
      <section className="card">
        <h2>This browser</h2>
        <label className="field">
          <span>Theme</span>
          <select
            value={shown}
            onChange={(event) => {
              const chosen = event.target.value as Theme;
              setTheme(chosen);
              setShown(chosen);
            }}
          >
            <option value="system">system</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
            <option value="contrast">high contrast</option>
          </select>
        </label>
        {(Object.keys(PREFERENCES) as Preference[]).map((preference) => (
          <PreferenceSwitch key={preference} preference={preference} />
        ))}
      </section>
      <section className="card">
        <h2>Keys and answers</h2>
        <KeySwitch />
        <UndoChoice />
        <p>
          <button type="button" onClick={showKeys}>
            Show all keys
          </button>
        </p>
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
        <TelegramCode />
      </section>
      {me?.role === "owner" && <Tokens />}
    </div>
  );
}

function PreferenceSwitch({ preference }: { preference: Preference }) {
  const [on, setOn] = useState(isEnabled(preference));
  const [error, setError] = useState("");
  return (
    <label className="option">
      <input
        type="checkbox"
        checked={on}
        onChange={(event) => {
          const wanted = event.target.checked;
          setPreference(preference, wanted).then(
            (enabled) => {
              setOn(enabled);
              setError(wanted && !enabled ? "Blocked by the browser." : "");
            },
            (failure) => {
              setOn(isEnabled(preference));
              setError(errorText(failure));
            },
          );
        }}
      />{" "}
      {PREFERENCES[preference]} <span className="error">{error}</span>
    </label>
  );
}

/** A code with which a Telegram chat is paired with this person. */
function TelegramCode() {
  const [code, setCode] = useState("");
  const action = useAction();
  const make = async (): Promise<void> => {
    await action.run(async () => setCode((await post<{ code: string }>("/api/pairing/code")).code));
  };
  return (
    <>
      <div className="buttons">
        <button type="button" onClick={() => void make()}>
          Pair a Telegram chat
        </button>
      </div>
      <ErrorText error={action.error} />
      {code && (
        <p role="status">
          Within ten minutes, send the bot: <code className="secret">/pair {code}</code>
        </p>
      )}
    </>
  );
}

/** Who has access, and how to grant or revoke it. */
function Tokens() {
  const found = useQuery(useCallback(() => get<{ tokens: Token[] }>("/api/tokens"), []));
  const [created, setCreated] = useState("");
  const action = useAction();
  const change = async (make: () => Promise<{ token?: string } | undefined>): Promise<void> => {
    if (await action.run(async () => setCreated((await make())?.token ?? ""))) found.reload();
  };
  const revoke = (token: Token): void => {
    if (!confirm(`Revoke the access of “${token.name}”?`)) return;
    void change(() => remove(`/api/tokens/${encodeURIComponent(token.id)}`));
  };
  return (
    <section className="card">
      <h2>Access</h2>
      <ErrorText error={found.error || action.error} />
      <Table heads={["name", "role", "kind", "expires", ACTIONS]}>
        {found.value?.tokens.map((token) => (
          <tr key={token.id}>
            <td>{token.name}</td>
            <td>{token.role}</td>
            <td>{token.label || token.kind}</td>
            <td>{token.expires ? moment(token.expires * 1000) : "never"}</td>
            <td>
              <RevokeButton what={`access of ${token.name}`} onClick={() => revoke(token)} />
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
          void change(() => post("/api/tokens", wanted));
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
        <button type="submit">Create token</button>
      </form>
      {created && (
        <p role="status">
          Copy it now, it is shown only once: <code className="secret">{created}</code>
        </p>
      )}
    </section>
  );
}
