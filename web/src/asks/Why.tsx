import { useContext } from "react";
import type { AskOpened } from "../api/types";
import { Countdown } from "../session/EntryRow";
import { Folder } from "../session/folder";
import { lookup } from "../state/lookup";
import { duration } from "../ui/format";
import { Marked } from "../ui/Marked";
import { reasonsOf } from "./request";

const THEN: Record<string, string> = { allow: "it is allowed", deny: "it is denied" };

/** Why a person is asked, by which rule, who may answer, and how long it waits. */
export function Why({ opened, at }: { opened: AskOpened; at: number }) {
  const reasons = reasonsOf(opened, useContext(Folder));
  const who = answerersOf(opened.answered_by ?? []);
  const { rule, source, wait } = opened;
  if (!reasons.length && !rule && !who && wait == null) return null;
  return (
    <div className="reasons">
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
            <span className="why">
              {" "}
              in <Marked text={source} code />
            </span>
          )}
        </p>
      )}
      {who && <p>{who}</p>}
      {wait != null && (
        <p>
          It waits {duration(wait * 1000)}.
          <Countdown
            until={at + wait * 1000}
            words={`Without an answer ${lookup(THEN, opened.then ?? "deny") ?? opened.then}`}
          />
        </p>
      )}
    </div>
  );
}

/** Who may answer, in words: whoever does is on each of the lists. */
export function answerersOf(lists: readonly (readonly string[])[]): string {
  const said = lists
    .filter((list) => list.length)
    .map((list) => list.map((one) => one.replace(/^role:/, "any ")).join(" or "));
  return said.length ? `To be answered by ${said.join(", and by ")}.` : "";
}
