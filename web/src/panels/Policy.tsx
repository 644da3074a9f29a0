import { useCallback, useState } from "react";
import { get } from "../api/http";
import type { components } from "../api/schema";
import { ErrorText } from "../ui/ErrorText";
import { moment, plural } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { useQuery } from "../ui/useQuery";
import { Audit } from "./policy/Audit";
import { Explain } from "./policy/Explain";
import { Grants, Suggestions } from "./policy/Grants";
import styles from "./policy/policy.module.css";
import { Replay } from "./policy/Replay";
import { Warnings } from "./policy/Warnings";

type View = components["schemas"]["PolicyView"];
type File = View["files"][number];

const PARTS = ["Rules", "Explain", "Audit log", "Replay", "Suggestions"] as const;
type Part = (typeof PARTS)[number];

/** What agents may do without asking, why, and what was decided. */
export default function Policy() {
  const [part, setPart] = useState<Part>("Rules");
  const view = useQuery(useCallback(() => get<View>("/api/policy"), []));
  return (
    <div className="page">
      <PageHead title="Policy" />
      <div role="tablist" className={styles.tabs} aria-label="Parts of the policy">
        {PARTS.map((one) => (
          <button
            key={one}
            type="button"
            role="tab"
            id={`policy-${one}`}
            aria-selected={one === part}
            aria-controls="policy-part"
            onClick={() => setPart(one)}
          >
            {one}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id="policy-part"
        className={styles.part}
        aria-labelledby={`policy-${part}`}
      >
        <ErrorText error={view.error} />
        {part === "Rules" && view.value && <Rules view={view.value} reload={view.reload} />}
        {part === "Explain" && <Explain names={view.value?.names ?? []} />}
        {part === "Audit log" && <Audit />}
        {part === "Replay" && <Replay />}
        {part === "Suggestions" && <Suggestions />}
      </div>
    </div>
  );
}

function Rules({ view, reload }: { view: View; reload: () => void }) {
  return (
    <>
      {view.files.map((file) => (
        <Source key={file.path} file={file} />
      ))}
      {!view.files.length && (
        <p className="muted">
          No policy file is in force: Claude Code's own settings decide, and it asks about the rest.
          Write rules to a file, and check it with <code>quarterdeck policy check FILE</code>
        </p>
      )}
      <p className="muted">Policies that a session can name: {view.names.join(", ") || "none"}</p>
      <Grants grants={view.grants} flaw={view.grants_flaw} reload={reload} />
    </>
  );
}

function Source({ file }: { file: File }) {
  return (
    <section className="card" aria-label={file.name}>
      <div className="buttons">
        <h2>{file.name}</h2>
        <span className="badge" data-tone={file.flaws?.length ? "bad" : "good"}>
          <span className="dot" aria-hidden="true" />
          {file.in_force}
        </span>
      </div>
      <p className="muted">
        <code>{file.path}</code>
      </p>
      <p>
        {plural(file.rules ?? 0, "rule")}, {plural(file.examples ?? 0, "example")}
        {file.default && <> · default: {file.default}</>}
        {file.since ? <> · since {moment(file.since)}</> : null}
      </p>
      {file.flaws?.map((flaw) => (
        <p key={`${flaw.line}:${flaw.text}`} className="error">
          line {flaw.line}: {flaw.text}
        </p>
      ))}
      <Warnings warnings={file.warnings} />
    </section>
  );
}
