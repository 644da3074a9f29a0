// The connection to the hub's stream: it comes back by itself, and goes on where it was.
//
// Knows frames and numbers; what events mean is the reducers' business. It hands on each event once
// and in order: what comes again after a reconnect is left out here.
import { Failure, failureOf } from "./http";
import { keyProtocols } from "./pageKey";
import type { Delta, Outcome, ServerFrame, Stored } from "./types";

export type Connection = "connecting" | "online" | "offline" | "refused";

export interface Listener {
  /** The connection is this way now. */
  connection(state: Connection): void;
  /** All sessions are followed from now on: what is listed now and told later has no gap. */
  ready(): void;
  /** Another journal: nothing that is known holds. */
  reset(): void;
  /** A session's numbers mean nothing any more: drop what is known of it. */
  gap(session: string): void;
  events(events: Stored[]): void;
  live(deltas: Delta[], whole: boolean): void;
}

interface Waiting {
  resolve(outcome: Outcome): void;
  reject(error: Error): void;
  frame: string;
  key: string | undefined;
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
/** A network that swallows everything lets a connection hang for minutes: it is tried anew sooner. */
const GREETING_WAIT = 10_000;

export class Stream {
  private socket: WebSocket | undefined;
  private readonly cursors = new Map<string, number>();
  private readonly heads = new Map<string, number>();
  private readonly waiting = new Map<string, Waiting>();
  private epoch: string | undefined;
  /** Whether this connection's hub has said who it is: before that nothing is said to it. */
  private greets = false;
  private follow = "";
  private tries = 0;
  private next = 1;
  private heard = 0;
  private beat = 15;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pulse: ReturnType<typeof setInterval> | undefined;
  private ended = false;

  constructor(
    private readonly url: string,
    private readonly to: Listener,
    private readonly open: (url: string) => WebSocket = (address) =>
      new WebSocket(address, keyProtocols()),
  ) {}

  start(): void {
    this.ended = false;
    this.connect();
    globalThis.addEventListener?.("online", this.hurry);
    globalThis.document?.addEventListener("visibilitychange", this.hurry);
  }

  stop(): void {
    this.ended = true;
    clearTimeout(this.timer);
    clearInterval(this.pulse);
    globalThis.removeEventListener?.("online", this.hurry);
    globalThis.document?.removeEventListener("visibilitychange", this.hurry);
    this.socket?.close();
  }

  /** After a reconnect go on with this session from here: what is known of it is up to `seq`. */
  track(session: string, seq: number): void {
    this.cursors.set(session, Math.max(seq, this.cursors.get(session) ?? 0));
  }

  untrack(session: string): void {
    this.cursors.delete(session);
  }

  /** Have a command done. Sent again after a reconnect if nobody said what came of it. */
  command(command: Record<string, unknown>, key?: string): Promise<Outcome> {
    const id = this.id();
    const frame = JSON.stringify({ t: "command", id, command });
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, frame, key });
      if (this.socket?.readyState === WebSocket.OPEN && this.greets) this.socket.send(frame);
    });
  }

  /** Do not send it again: somebody has thought better of it. */
  withdraw(key: string): void {
    for (const [id, one] of this.waiting) {
      if (one.key !== key) continue;
      this.waiting.delete(id);
      one.reject(new Failure("withdrawn", "It was taken back.", 0));
    }
  }

  private id(): string {
    return String(this.next++);
  }

  private say(frame: Record<string, unknown>): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  private connect(): void {
    clearTimeout(this.timer);
    // Who was offline stays so until the hub has greeted: what the page says does not flicker.
    if (this.tries === 0 && this.epoch === undefined) this.to.connection("connecting");
    const socket = this.open(this.url);
    this.socket = socket;
    this.timer = setTimeout(() => this.giveUp(), GREETING_WAIT);
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      this.heard = Date.now();
      this.take(JSON.parse(String(message.data)) as ServerFrame);
    };
    socket.onclose = (event) => {
      if (socket === this.socket) this.lost(event.code);
    };
  }

  private giveUp(): void {
    const socket = this.socket;
    this.lost(1006);
    socket?.close();
  }

  private lost(code: number): void {
    clearTimeout(this.timer);
    clearInterval(this.pulse);
    this.socket = undefined;
    this.greets = false;
    if (this.ended) return;
    if (code === 4401 || code === 4400) {
      this.to.connection("refused");
      return;
    }
    this.to.connection("offline");
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.tries++);
    this.timer = setTimeout(() => this.connect(), longest * (0.5 + Math.random() / 2));
  }

  /** The machine woke up, or the network is back: do not wait, and do not trust an old socket. */
  private readonly hurry = (): void => {
    if (this.ended || globalThis.document?.visibilityState === "hidden") return;
    this.tries = 0;
    if (this.socket === undefined) this.connect();
    else this.checkPulse();
  };

  private checkPulse(): void {
    const silence = Date.now() - this.heard;
    if (this.heard && silence > this.beat * 3000) this.giveUp();
    else this.say({ t: "beat" });
  }

  private take(frame: ServerFrame): void {
    switch (frame.t) {
      case "hello":
        return this.greeted(frame);
      case "following":
        for (const [session, found] of Object.entries(frame.sessions)) {
          if (found.status === "gap") {
            this.cursors.delete(session);
            this.heads.delete(session);
            this.to.gap(session);
          }
        }
        if (frame.id === this.follow) this.to.ready();
        return;
      case "events":
        return this.happened(frame.events);
      case "live":
        return this.to.live(frame.deltas, frame.whole ?? false);
      case "done":
        this.waiting.get(frame.id)?.resolve(frame.outcome);
        this.waiting.delete(frame.id);
        return;
      case "failed":
        this.waiting.get(frame.id)?.reject(failureOf(frame.problem));
        this.waiting.delete(frame.id);
        return;
      default:
        return;
    }
  }

  private greeted(hello: Extract<ServerFrame, { t: "hello" }>): void {
    this.tries = 0;
    clearTimeout(this.timer);
    this.beat = hello.beat_seconds;
    clearInterval(this.pulse);
    this.pulse = setInterval(() => this.checkPulse(), this.beat * 1000);
    if (this.epoch !== undefined && this.epoch !== hello.epoch) {
      this.cursors.clear();
      this.heads.clear();
      this.to.reset();
    }
    this.epoch = hello.epoch;
    this.greets = true;
    const sessions = Object.fromEntries(this.cursors);
    this.follow = this.id();
    this.say({ t: "follow", id: this.follow, all: true, epoch: this.epoch, sessions });
    for (const one of this.waiting.values()) this.socket?.send(one.frame);
    this.to.connection("online");
  }

  private happened(events: Stored[]): void {
    const fresh = events.filter((event) => {
      if (event.seq <= (this.heads.get(event.session) ?? 0)) return false;
      this.heads.set(event.session, event.seq);
      if (this.cursors.has(event.session)) this.cursors.set(event.session, event.seq);
      return true;
    });
    if (fresh.length) this.to.events(fresh);
  }
}
