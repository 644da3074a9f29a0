import { lookup } from "../../state/lookup";
import { text } from "../../text";
import { css } from "../../ui/css";
import styles from "./policy.module.css";

const TONES: Record<string, string> = { allow: "good", deny: "bad", ask: "wait" };

/** A decision, in colour and in a word. */
export function Verdict({ word }: { word: string }) {
  return (
    <span
      className={`${css.badge.badge} ${styles.verdict}`}
      data-tone={lookup(TONES, word) ?? "idle"}
    >
      <span className={css.badge.dot} aria-hidden="true" />
      {lookup(text.policy.verdicts, word) ?? word}
    </span>
  );
}
