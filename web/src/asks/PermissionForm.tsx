import { useState } from "react";
import { wordsOf } from "../api/http";
import type { Answer } from "../api/types";
import { CodeBlock } from "../session/CodeBlock";
import { Diff } from "../session/Diff";
import { text } from "../state/lines";
import { editsOf } from "../state/tools";
import type { FormProps } from "./AskCard";
import { alwaysRulesOf, inputOf, sessionRulesOf } from "./request";

type Scope = "once" | "session" | "always";
type Open = "edit" | "deny" | undefined;

/** A tool call that a person decides about. */
export function PermissionForm({ opened, busy, compact, answer }: FormProps) {
  const input = inputOf(opened);
  const [open, setOpen] = useState<Open>();
  const [draft, setDraft] = useState(() => JSON.stringify(input, null, 2));
  const [wrong, setWrong] = useState("");
  const [reason, setReason] = useState("");
  const always = alwaysRulesOf(opened);
  const session = sessionRulesOf(opened);
  const allow = (scope: Scope): void => answer({ answer: "allow", scope } as Answer);
  const allowEdited = (): void => {
    try {
      answer({ answer: "allow", scope: "once", input: JSON.parse(draft) } as Answer);
    } catch (error) {
      setWrong(wordsOf(error));
    }
  };
  return (
    <>
      <What tool={opened.tool} title={opened.title} input={input} compact={compact} />
      {open === "edit" && (
        <div className="edit">
          <label>
            What it is run with instead
            <textarea
              value={draft}
              rows={Math.min(14, draft.split("\n").length + 1)}
              spellCheck={false}
              onChange={(event) => setDraft(event.target.value)}
            />
          </label>
          {wrong && <p className="error">That is no JSON: {wrong}</p>}
          <div className="buttons">
            <button type="button" className="primary" disabled={busy} onClick={allowEdited}>
              Allow this instead
            </button>
            <button type="button" onClick={() => setOpen(undefined)}>
              Back
            </button>
          </div>
        </div>
      )}
      {open === "deny" && (
        <div className="edit">
          <label>
            Why not? The agent reads this.
            <textarea value={reason} rows={2} onChange={(event) => setReason(event.target.value)} />
          </label>
          <div className="buttons">
            <button
              type="button"
              className="danger"
              disabled={busy}
              onClick={() => answer({ answer: "deny", message: reason, stop: false })}
            >
              Deny, and let it go on
            </button>
            <button
              type="button"
              disabled={busy}
              onClick={() => answer({ answer: "deny", message: reason, stop: true })}
            >
              Deny and stop
            </button>
            <button type="button" onClick={() => setOpen(undefined)}>
              Back
            </button>
          </div>
        </div>
      )}
      {open === undefined && (
        <div className="buttons">
          <button
            type="button"
            className="primary"
            data-key="y"
            title="Key: y"
            disabled={busy}
            onClick={() => allow("once")}
          >
            Allow once
          </button>
          <button
            type="button"
            data-key="s"
            title={`Key: s. Adds for the session: ${session.join(", ")}`}
            disabled={busy}
            onClick={() => allow("session")}
          >
            For the session
          </button>
          <button
            type="button"
            data-key="a"
            title={`Key: a. Adds for always: ${always.join(", ")}`}
            disabled={busy}
            onClick={() => allow("always")}
          >
            Always
          </button>
          <button
            type="button"
            data-key="e"
            title="Key: e"
            disabled={busy}
            onClick={() => setOpen("edit")}
          >
            Edit …
          </button>
          <button
            type="button"
            className="danger"
            data-key="n"
            title="Key: n"
            disabled={busy}
            onClick={() => setOpen("deny")}
          >
            Deny …
          </button>
        </div>
      )}
      {open === undefined && !compact && (
        <dl className="adds">
          <Adds words="For the session" rules={session} />
          <Adds words="Always" rules={always} />
        </dl>
      )}
    </>
  );
}

/** What a button would add to what nobody is asked about. */
function Adds({ words, rules }: { words: string; rules: string[] }) {
  return (
    <div>
      <dt>«{words}» adds</dt>
      <dd>
        {rules.map((rule) => (
          <code key={rule}>{rule}</code>
        ))}
      </dd>
    </div>
  );
}

function What(props: {
  tool: string;
  title: string;
  input: Record<string, unknown>;
  compact: boolean;
}) {
  const edits = editsOf(props.tool, props.input);
  if (props.compact) {
    return (
      <p className="what">
        <strong>{props.tool}</strong> <code>{props.title}</code>
      </p>
    );
  }
  if (edits.length) {
    return edits.map((edit, index) => <Diff key={index} edit={edit} />);
  }
  if (props.tool === "Bash") {
    return (
      <>
        {text(props.input.description) && <p className="why">{text(props.input.description)}</p>}
        <CodeBlock code={text(props.input.command)} language="bash" />
      </>
    );
  }
  return (
    <>
      <h3>
        {props.tool}: {props.title}
      </h3>
      <CodeBlock code={JSON.stringify(props.input, null, 2)} language="json" />
    </>
  );
}
