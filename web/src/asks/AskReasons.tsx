import { useContext } from "react";
import type { AskOpened } from "../api/types";
import { Countdown } from "../session/EntryRow";
import { WorkingDirectory } from "../session/relativePath";
import { lookup } from "../state/lookup";
import { duration } from "../ui/format";
import { Marked } from "../ui/Marked";
import styles from "./asks.module.css";
import { reasonsOf } from "./request";

const THEN: Record<string, string> = {
  allow: "Allowed automatically",
  deny: "Denied automatically",
};

/** Why a person is asked, by which rule, who may answer, and when it times out. */
export function AskReasons({ opened, at }: { opened: AskOpened; at: number }) {
  const reasons = reasonsOf(opened, useContext(WorkingDirectory));
  const who = answererText(opened.answered_by ?? []);
  const { rule, source, wait } = opened;
  if (!reasons.length && !rule && !who && wait == null) return null;
  return (
    <div className={styles.reasons}>
      {reasons.length > 0 && (
        <ul>
          {reasons.map((one) => (
            <li key={one}>
              <Marked text={one} />
            </li>
          ))}
        </ul>
      )}
      {rule && (
        <p>
          Rule{" "}
          <code>
            <Marked text={rule} code />
          </code>
          {source && (
            <span className="muted">
              {" "}
              in <Marked text={source} code />
            </span>
          )}
        </p>
      )}
      {who && <p>{who}</p>}
      {wait != null && (
        <p>
          Times out after {duration(wait * 1000)}.
          <Countdown
            until={at + wait * 1000}
            words={lookup(THEN, opened.then ?? "deny") ?? opened.then ?? ""}
          />
        </p>
      )}
    </div>
  );
}

/** Who may answer, in words: a person must be on each of the lists. */
export function answererText(lists: readonly (readonly string[])[]): string {
  const said = lists
    .filter((list) => list.length)
    .map((list) => list.map((one) => one.replace(/^role:/, "any ")).join(" or "));
  return said.length ? `Must be answered by ${said.join(", and by ")}.` : "";
}
