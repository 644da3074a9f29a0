// Numbers and times for people. Their words are in the catalogue.
import { text } from "../text";

export function cost(usd: number): string {
  if (usd === 0) return text.numbers.noUsd;
  return usd < 0.01 ? text.numbers.smallUsd : text.numbers.usd(usd);
}

export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 1_000_000) {
    return text.numbers.thousands((count / 1000).toFixed(count < 10_000 ? 1 : 0));
  }
  return text.numbers.millions((count / 1_000_000).toFixed(1));
}

export function duration(ms: number): string {
  if (ms < 1000) return text.numbers.milliseconds(Math.round(ms));
  const seconds = ms / 1000;
  if (seconds < 60) return text.numbers.seconds(seconds.toFixed(seconds < 10 ? 1 : 0));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return text.numbers.minutesSeconds(minutes, Math.round(seconds % 60));
  return text.numbers.hoursMinutes(Math.floor(minutes / 60), minutes % 60);
}

/** How long something takes already, abbreviated. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return text.numbers.seconds(seconds);
  if (seconds < 3600) return text.numbers.minutes(Math.floor(seconds / 60));
  return text.numbers.hoursMinutes(Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60));
}

/** How long ago, abbreviated. */
export function ago(at: number, now: number): string {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 60) return text.numbers.now;
  if (seconds < 3600) return text.numbers.minutes(Math.floor(seconds / 60));
  if (seconds < 86_400) return text.numbers.hours(Math.floor(seconds / 3600));
  return text.numbers.days(Math.floor(seconds / 86_400));
}

// Created once: creating a formatter takes much longer than using it.
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat([], { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });

export function clock(at: number): string {
  return CLOCK.format(at);
}

export function day(at: number): string {
  return DAY.format(at);
}

export function moment(at: number): string {
  return MOMENT.format(at);
}

/** A large number of bytes. */
export function bytes(count: number): string {
  const megabytes = Math.round(count / 2 ** 20);
  if (megabytes < 1024) return text.numbers.megabytes(megabytes);
  return text.numbers.gigabytes((count / 2 ** 30).toFixed(1));
}

/** An id for a prompt or a session, which makes its command idempotent. */
export function newId(): string {
  // A page from another machine over plain http has no `randomUUID`.
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte, index) => {
    const marked = index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte;
    return marked.toString(16).padStart(2, "0");
  }).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
