// Words for what the hub tells as a code. What an older hub told as a sentence is shown as it is.
import type { Coded, EventOf, Session } from "../api/types";
import { text as words } from "../text";
import { moment } from "../ui/format";
import { lookup } from "./lookup";

/** A code in words. */
export function codedText(coded: Coded): string {
  const texts = words.coded;
  const { exit_code: exit, signal, close_code: close, until, more } = coded;
  const write = lookup(texts.texts, coded.code);
  if (!write) return texts.unknown(coded.code, coded.detail ?? "");
  return write({
    name: coded.name ?? "",
    other: coded.other ?? "",
    names: coded.names ?? [],
    path: coded.path ?? "",
    commit: coded.commit ?? "",
    ref: coded.ref ?? "",
    url: coded.url ?? "",
    verb: coded.verb ?? "",
    count: coded.count ?? 0,
    most: coded.most ?? 0,
    seconds: coded.seconds ?? 0,
    detail: coded.detail ?? "",
    until: until == null ? "" : moment(until),
    pid: coded.pid ?? null,
    exit: signal != null ? texts.signal(signal) : exit != null ? texts.exit(exit) : "",
    close: close == null ? "" : texts.close(close),
    more: more ? codedText(more) : "",
  });
}

/** A code in words, or the sentence of an older hub. */
export function textOf(coded: Coded | null | undefined, sentence: string): string {
  return coded ? codedText(coded) : sentence;
}

/** How a run ended. */
export function endText(event: EventOf<"run.ended">): string {
  const { coded, exit_code = null, signal = null } = event;
  return coded ? codedText({ ...coded, exit_code, signal }) : event.reason;
}

/** An alarm, and what was done about it. */
export function alarmText(event: EventOf<"alarm">): string {
  const act = event.act ?? "";
  const done = event.coded
    ? (lookup(words.coded.acts, act) ?? words.coded.unknown(act, ""))
    : (event.action ?? "");
  return words.coded.alarm(textOf(event.coded, event.text), done);
}

/** Why a call was allowed, denied or asked about. */
export function reasonTexts(event: {
  coded?: readonly Coded[] | undefined;
  reasons?: readonly string[] | undefined;
}): string[] {
  return [...(event.coded ?? []).map(codedText), ...(event.reasons ?? [])];
}

/** More about the state of a session. */
export function detailOf(session: Session): string {
  return textOf(session.coded, session.detail);
}
