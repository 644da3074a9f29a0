// How this page and its hub are encrypted, in findings. Pure.
import type { components } from "../../api/schema";
import { text } from "../../text";
import { moment } from "../../ui/format";

type Https = components["schemas"]["HttpsShape"];

const words = text.settings;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]", "::1"]);

export interface Note {
  tone: "good" | "warn" | "bad" | "plain";
  text: string;
}

/** Whether this page itself is encrypted. */
export function pageNote(protocol: string, host: string): Note {
  if (protocol === "https:") return { tone: "good", text: words.nowSecure };
  if (LOOPBACK.has(host)) return { tone: "good", text: words.nowLocal };
  return { tone: "bad", text: words.nowPlain };
}

/** Whether a certificate is for a name; `*.example` is for one more part. */
export function isFor(names: readonly string[], host: string): boolean {
  const wanted = host.replace(/^\[|\]$/g, "").toLowerCase();
  return names.some(
    (name) =>
      name.toLowerCase() === wanted ||
      (name.startsWith("*.") && wanted.replace(/^[^.]+/, "*") === name.toLowerCase()),
  );
}

/** What is known about one of the three ways. */
export function wayNotes(
  way: "files" | "tailscale" | "proxy",
  https: Https,
  protocol: string,
  host: string,
): Note[] {
  const inUse = https.way === (way === "tailscale" ? "auto" : way);
  const notes: Note[] = inUse ? [{ tone: "good", text: words.inUse }] : [];
  if (way === "tailscale") {
    notes.push(
      https.tailscale
        ? { tone: "good", text: words.available(https.tailscale) }
        : { tone: "plain", text: words.notInstalled },
    );
  }
  if (way === "proxy" && inUse) {
    notes.push(
      protocol === "https:"
        ? { tone: "good", text: words.proxySeen }
        : { tone: "warn", text: words.proxyNotSeen },
    );
  }
  if (!inUse || way === "proxy") return notes;
  if (https.problem) notes.push({ tone: "bad", text: words.unreadable(https.problem) });
  const { certificate } = https;
  if (!certificate) return notes;
  notes.push({
    tone: "plain",
    text: words.certificateOf(certificate.names.join(", "), moment(certificate.ends)),
  });
  const problem = words.certificateProblems[certificate.problem];
  if (problem) notes.push({ tone: "bad", text: problem });
  const known = isFor(certificate.names, host) || host === https.tailscale;
  if (protocol === "https:" && !known) notes.push({ tone: "warn", text: words.wrongName(host) });
  return notes;
}
