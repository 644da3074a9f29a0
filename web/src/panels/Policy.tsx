import {
  FlaskConical,
  History,
  Lightbulb,
  PencilLine,
  ScrollText,
  ShieldCheck,
} from "lucide-react";
import { useCallback } from "react";
import { useLocation, useSearch } from "wouter";
import { get } from "../api/http";
import type { components } from "../api/schema";
import { lookup } from "../state/lookup";
import { useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { Empty } from "../ui/Empty";
import { ErrorText } from "../ui/ErrorText";
import { moment } from "../ui/format";
import { PageHead } from "../ui/PageHead";
import { Tabs } from "../ui/Tabs";
import { useQuery } from "../ui/useQuery";
import { Audit } from "./policy/Audit";
import { Edit } from "./policy/Edit";
import { Explain } from "./policy/Explain";
import { Grants, Suggestions } from "./policy/Grants";
import styles from "./policy/policy.module.css";
import { Replay } from "./policy/Replay";
import { Warnings } from "./policy/Warnings";

type View = components["schemas"]["PolicyView"];
type File = View["files"][number];

const words = text.policy;
const TABS = [
  { value: "rules", label: words.tabs.rules, icon: ShieldCheck },
  { value: "edit", label: words.tabs.edit, icon: PencilLine },
  { value: "explain", label: words.tabs.explain, icon: FlaskConical },
  { value: "audit", label: words.tabs.audit, icon: ScrollText },
  { value: "replay", label: words.tabs.replay, icon: History },
  { value: "suggestions", label: words.tabs.suggestions, icon: Lightbulb },
] as const;
type Part = (typeof TABS)[number]["value"];

/** What agents may do without asking, why, and what was decided. */
export default function Policy() {
  const manage = useRights().includes("manage");
  const wanted = new URLSearchParams(useSearch()).get("part");
  const [, go] = useLocation();
  const tabs = TABS.filter((tab) => tab.value !== "edit" || manage);
  const part: Part = tabs.find((tab) => tab.value === wanted)?.value ?? "rules";
  const view = useQuery(useCallback(() => get<View>("/api/policy"), []));
  const files = view.value?.files.map((file) => file.name) ?? [];
  return (
    <div className={css.layout.page}>
      <PageHead title={words.title} />
      <Tabs
        label={words.parts}
        value={part}
        tabs={tabs}
        onChange={(next) => go(`/policy?part=${next}`, { replace: true })}
      >
        <div className={styles.part}>
          <ErrorText error={view.error} />
          {part === "rules" && view.value && <Rules view={view.value} reload={view.reload} />}
          {part === "edit" && <Edit files={files} onSaved={view.reload} />}
          {part === "explain" && <Explain names={view.value?.names ?? []} />}
          {part === "audit" && <Audit />}
          {part === "replay" && <Replay />}
          {part === "suggestions" && <Suggestions />}
        </div>
      </Tabs>
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
        <Empty icon={ShieldCheck} title={words.none}>
          {words.noneHint} <code>{words.noneCommand}</code>
        </Empty>
      )}
      <p className={css.texts.muted}>{words.names(view.names.join(", "))}</p>
      <Grants grants={view.grants} flaw={view.grants_flaw} reload={reload} />
    </>
  );
}

function Source({ file }: { file: File }) {
  const facts = [
    words.facts(file.rules ?? 0, file.examples ?? 0),
    file.default ? words.default(file.default) : "",
    file.since ? words.since(moment(file.since)) : "",
  ];
  return (
    <section className={css.card.card} aria-label={file.name}>
      <div className={css.layout.buttons}>
        <h2>{file.name}</h2>
        <span className={css.badge.badge} data-tone={file.flaws?.length ? "bad" : "good"}>
          <span className={css.badge.dot} aria-hidden="true" />
          {lookup(words.inForce, file.in_force) ?? file.in_force}
        </span>
      </div>
      <p className={css.texts.muted}>
        <code>{file.path}</code>
      </p>
      <p>{facts.filter(Boolean).join(" · ")}</p>
      {file.flaws?.map((flaw) => (
        <p key={`${flaw.line}:${flaw.text}`} className={css.texts.error}>
          {words.flaw(flaw.line, flaw.text)}
        </p>
      ))}
      <Warnings warnings={file.warnings} />
    </section>
  );
}
