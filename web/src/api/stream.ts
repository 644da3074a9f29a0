// The connection to the hub's stream. It reconnects by itself, and continues where it was.
//
// Knows frames and sequence numbers, and not what events mean. It hands on each event once and in
// order: events that the hub sends again after a reconnect are left out here.

import { text } from "../text";
import { ApiError, toApiError } from "./http";
import { keyProtocols } from "./pageKey";
import type {
  ClientFrame,
  Command,
  Delta,
  Hello,
  Outcome,
  ServerFrame,
  Session,
  Stored,
} from "./types";

export type Connection = "connecting" | "online" | "offline" | "refused";

export interface Listener {
  connection(state: Connection): void;
  /** All sessions are followed from now on: a listing that is read now leaves no gap. */
  ready(): void;
  /** Another journal: nothing that is known holds. */
  reset(): void;
  /** A session's cursor is not valid any more: drop what is known of it. */
  gap(session: string): void;
  events(events: Stored[]): void;
  /** Sessions that have changed, as the hub folds them. */
  views(sessions: Session[]): void;
  live(deltas: Delta[], whole: boolean): void;
  /** What follows the person has changed, maybe on another device. */
  personal(version: number): void;
}

/** A command that the hub has not acknowledged. */
interface Pending {
  resolve(outcome: Outcome): void;
  reject(error: Error): void;
  frame: string;
  key: string | undefined;
}

/** In ms: the backoff before the first reconnect, and the longest one. */
const FIRST_BACKOFF = 500;
const LONGEST_BACKOFF = 15_000;
/** In ms: a network that drops all packets lets a connection hang for minutes. */
const GREETING_TIMEOUT = 10_000;

/** In UTF-8. A small text is not measured: no letter has more than three bytes for each unit. */
const byteLength = (text: string): number =>
  text.length < 64 * 1024 ? text.length : new TextEncoder().encode(text).length;

/** Whether this browser can; older ones cannot. */
const canUnpack = (): boolean => "DecompressionStream" in globalThis;

async function unpack(data: ArrayBuffer): Promise<string> {
  const { readable, writable } = new DecompressionStream("gzip");
  const writer = writable.getWriter();
  // What fails here fails below as well.
  writer.write(new Uint8Array(data)).catch(() => undefined);
  writer.close().catch(() => undefined);
  const reader = readable.getReader();
  const decoder = new TextDecoder();
  let unpacked = "";
  for (;;) {
    const { done, value } = await reader.read();
    unpacked += decoder.decode(value, { stream: !done });
    if (done) return unpacked;
  }
}

export class Stream {
  private socket: WebSocket | undefined;
  /** Sessions that are followed by name after a reconnect, each after this event. */
  private readonly cursors = new Map<string, number>();
  private readonly heads = new Map<string, number>();
  private readonly pending = new Map<string, Pending>();
  private epoch: string | undefined;
  /** Whether the hub has greeted on this connection: nothing is sent before. */
  private greeted = false;
  private followId = "";
  private attempts = 0;
  private nextId = 1;
  private frameBytes = Number.POSITIVE_INFINITY;
  private receivedAt = 0;
  private beatSeconds = 15;
  /** Ends when the last frame that waits to be unpacked was taken. */
  private unpacking: Promise<void> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private beatTimer: ReturnType<typeof setInterval> | undefined;
  private stopped = false;

  constructor(
    private readonly url: string,
    private readonly listener: Listener,
    private readonly open: (url: string) => WebSocket = (address) =>
      new WebSocket(address, keyProtocols()),
  ) {}

  start(): void {
    this.stopped = false;
    this.connect();
    globalThis.addEventListener?.("online", this.reconnectNow);
    globalThis.document?.addEventListener("visibilitychange", this.reconnectNow);
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    clearInterval(this.beatTimer);
    globalThis.removeEventListener?.("online", this.reconnectNow);
    globalThis.document?.removeEventListener("visibilitychange", this.reconnectNow);
    this.socket?.close();
  }

  /** After a reconnect, replay this session from here: what is known of it is up to `seq`. */
  track(session: string, seq: number): void {
    this.cursors.set(session, Math.max(seq, this.cursors.get(session) ?? 0));
  }

  untrack(session: string): void {
    this.cursors.delete(session);
  }

  /** Send a command. It is sent again after a reconnect if the hub has not acknowledged it. */
  command(command: Command, key?: string): Promise<Outcome> {
    const id = this.newId();
    const frame = JSON.stringify({ t: "command", id, command } satisfies ClientFrame);
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject, frame, key });
      if (this.socket?.readyState === WebSocket.OPEN && this.greeted) this.sendPending(id);
    });
  }

  /** The hub ends a connection with a frame that is too large, and it would be sent again. */
  private sendPending(id: string): void {
    const one = this.pending.get(id);
    if (one && byteLength(one.frame) > this.frameBytes) {
      this.pending.delete(id);
      const limit = text.numbers.megabytes(Math.floor(this.frameBytes / 2 ** 20));
      one.reject(new ApiError("too_large", text.states.errors.tooLarge(limit), 413));
    } else if (one) this.socket?.send(one.frame);
  }

  /** Do not send the command with this key again. */
  withdraw(key: string): void {
    for (const [id, one] of this.pending) {
      if (one.key !== key) continue;
      this.pending.delete(id);
      one.reject(new ApiError("withdrawn", text.states.errors.withdrawn, 0));
    }
  }

  private newId(): string {
    return String(this.nextId++);
  }

  private send(frame: ClientFrame): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  private connect(): void {
    clearTimeout(this.timer);
    // An offline page stays offline until the hub has greeted, so that its banner does not flicker.
    if (this.attempts === 0 && this.epoch === undefined) this.listener.connection("connecting");
    const socket = this.open(this.url);
    this.socket = socket;
    this.timer = setTimeout(() => this.abandon(), GREETING_TIMEOUT);
    socket.binaryType = "arraybuffer";
    this.unpacking = undefined;
    socket.onmessage = (message: MessageEvent<string | ArrayBuffer>) => {
      if (socket !== this.socket) return;
      this.receivedAt = Date.now();
      const { data } = message;
      if (typeof data === "string" && !this.unpacking) this.receiveText(data);
      else this.receiveInTurn(socket, data);
    };
    socket.onclose = (event) => {
      if (socket === this.socket) this.disconnected(event.code);
    };
  }

  /** Unpack a frame. Frames are taken in their order: the ones behind it wait. */
  private receiveInTurn(socket: WebSocket, data: string | ArrayBuffer): void {
    const unpacking = (this.unpacking ?? Promise.resolve())
      .then(() => (typeof data === "string" ? data : unpack(data)))
      .then(
        (found) => {
          if (socket !== this.socket) return;
          if (this.unpacking === unpacking) this.unpacking = undefined;
          try {
            this.receiveText(found);
          } catch (error) {
            reportError(error); // as it is where nothing waits: the frames behind it are taken
          }
        },
        () => {
          // Not even a frame of the hub: everything since the cursors is sent again.
          if (socket === this.socket) this.abandon();
        },
      );
    this.unpacking = unpacking;
  }

  private receiveText(frame: string): void {
    this.receive(JSON.parse(frame) as ServerFrame);
  }

  /** Take the connection for dead, and open another. */
  private abandon(): void {
    const socket = this.socket;
    this.disconnected(1006);
    socket?.close();
  }

  private disconnected(code: number): void {
    clearTimeout(this.timer);
    clearInterval(this.beatTimer);
    this.socket = undefined;
    this.greeted = false;
    if (this.stopped) return;
    if (code === 4401 || code === 4400) {
      this.listener.connection("refused");
      return;
    }
    this.listener.connection("offline");
    const backoff = Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** this.attempts++);
    const jitter = 0.5 + Math.random() / 2;
    this.timer = setTimeout(() => this.connect(), backoff * jitter);
  }

  /** The machine woke up, or the network is back: do not wait, and do not trust an old socket. */
  private readonly reconnectNow = (): void => {
    if (this.stopped || globalThis.document?.visibilityState === "hidden") return;
    this.attempts = 0;
    if (this.socket === undefined) this.connect();
    else this.checkBeat();
  };

  private checkBeat(): void {
    const silence = Date.now() - this.receivedAt;
    if (this.receivedAt && silence > this.beatSeconds * 3000) this.abandon();
    else this.send({ t: "beat" });
  }

  private receive(frame: ServerFrame): void {
    switch (frame.t) {
      case "hello":
        return this.receiveHello(frame);
      case "following":
        for (const [session, found] of Object.entries(frame.sessions)) {
          if (found.status === "gap") {
            this.cursors.delete(session);
            this.heads.delete(session);
            this.listener.gap(session);
          }
        }
        if (frame.id === this.followId) this.listener.ready();
        return;
      case "events":
        return this.receiveEvents(frame.events);
      case "views":
        return this.listener.views(frame.sessions);
      case "live":
        return this.listener.live(frame.deltas, frame.whole ?? false);
      case "done":
        this.pending.get(frame.id)?.resolve(frame.outcome);
        this.pending.delete(frame.id);
        return;
      case "personal":
        return this.listener.personal(frame.version);
      case "failed":
        this.pending.get(frame.id)?.reject(toApiError(frame.problem));
        this.pending.delete(frame.id);
        return;
      default:
        return;
    }
  }

  private receiveHello(hello: Hello): void {
    this.attempts = 0;
    clearTimeout(this.timer);
    this.beatSeconds = hello.beat_seconds;
    clearInterval(this.beatTimer);
    this.beatTimer = setInterval(() => this.checkBeat(), this.beatSeconds * 1000);
    if (this.epoch !== undefined && this.epoch !== hello.epoch) {
      this.cursors.clear();
      this.heads.clear();
      this.listener.reset();
    }
    this.epoch = hello.epoch;
    this.greeted = true;
    const sessions = Object.fromEntries(this.cursors);
    this.followId = this.newId();
    this.send({
      t: "follow",
      id: this.followId,
      all: true,
      epoch: this.epoch,
      sessions,
      pictures: false,
      packed: canUnpack(),
      personal: true,
    });
    this.frameBytes = hello.limits.frame_bytes;
    for (const id of [...this.pending.keys()]) this.sendPending(id);
    this.listener.connection("online");
  }

  private receiveEvents(events: Stored[]): void {
    const fresh = events.filter((event) => {
      if (event.seq <= (this.heads.get(event.session) ?? 0)) return false;
      this.heads.set(event.session, event.seq);
      if (this.cursors.has(event.session)) this.cursors.set(event.session, event.seq);
      return true;
    });
    if (fresh.length) this.listener.events(fresh);
  }
}
