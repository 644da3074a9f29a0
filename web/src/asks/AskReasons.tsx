import { useContext } from "react";
import type { AskOpened } from "../api/types";
import { Countdown } from "../session/EntryRow";
import { WorkingDirectory } from "../session/relativePath";
import { lookup } from "../state/lookup";
import { text as catalogue } from "../text";
import { css } from "../ui/css";
import { duration } from "../ui/format";
import { Marked } from "../ui/Marked";
import styles from "./asks.module.css";
import { reasonsOf } from "./request";

const words = catalogue.asks;

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
          {words.rule}{" "}
          <code>
            <Marked text={rule} code />
          </code>
          {source && (
            <span className={css.texts.muted}>
              {" "}
              {words.inSource} <Marked text={source} code />
            </span>
          )}
        </p>
      )}
      {who && <p>{who}</p>}
      {wait != null && (
        <p>
          {words.timesOut(duration(wait * 1000))}
          <Countdown
            until={at + wait * 1000}
            words={lookup(words.then, opened.then ?? "deny") ?? opened.then ?? ""}
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
    .map((list) => list.map((one) => one.replace(/^role:/, words.any)).join(words.or));
  return said.length ? words.mustAnswer(said.join(words.andBy)) : "";
}
