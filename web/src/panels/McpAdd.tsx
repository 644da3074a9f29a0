import { type FormEvent, useState } from "react";
import { store } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { useAction } from "../ui/useAction";
import { serverConfig } from "./mcpServer";

/** Add an MCP server to the session. The CLI replaces all that were added: `kept` are given again. */
export function McpAdd(props: {
  session: string;
  known: readonly string[];
  kept: Record<string, unknown>;
  onDone: () => void;
}) {
  const action = useAction();
  const [kind, setKind] = useState("stdio");
  const [wrong, setWrong] = useState("");
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const data = new FormData(form);
    const name = String(data.get("name") ?? "").trim();
    const config = serverConfig({ name, kind, place: String(data.get("place") ?? "") });
    if (props.known.includes(name)) return setWrong(text.session.mcp.nameTaken);
    if (!config) return setWrong(text.session.mcp.incomplete);
    setWrong("");
    void action.run(async () => {
      const answer = await store.control<{ errors?: Record<string, string> }>(props.session, {
        subtype: "mcp_set_servers",
        servers: { ...props.kept, [name]: config },
      });
      props.onDone();
      const [failed] = Object.entries(answer.errors ?? {});
      if (failed) throw new Error(text.session.mcp.failed(...failed));
      form.reset();
    });
  };
  return (
    <details>
      <summary>{text.session.mcp.add}</summary>
      <form onSubmit={submit}>
        <label className={css.field.field}>
          <span>{text.session.mcp.serverName}</span>
          <input name="name" autoComplete="off" />
        </label>
        <label className={css.field.field}>
          <span>{text.session.mcp.kind}</span>
          <select value={kind} onChange={(event) => setKind(event.target.value)}>
            {Object.entries(text.session.mcp.kinds).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label className={css.field.field}>
          <span>{kind === "stdio" ? text.session.mcp.command : text.session.mcp.url}</span>
          <input name="place" autoComplete="off" spellCheck={false} />
        </label>
        <p className={css.texts.muted}>{text.session.mcp.addHint}</p>
        <button type="submit" className={css.button.small} disabled={action.busy}>
          {text.session.mcp.addNow}
        </button>
        <ErrorText error={wrong || action.error} />
      </form>
    </details>
  );
}
