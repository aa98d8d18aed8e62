import type { ServerResponse } from 'node:http';
import { isAfter, NOWHERE, type Position } from './position.ts';
import { CLOSED, COMMENT, RETRY, type Revision } from './revision.ts';
import type { Viewer } from './viewer.ts';

/** What a stream tells its hub; one object for all streams. */
export type StreamEvents = Readonly<{
  stallMs: number;
  sent(): void;
  /** Revisions that the client will not see, because a later one stands in for them. */
  skipped(count: number): void;
  /** The client read nothing for `stallMs` and was cut off. */
  stalled(): void;
}>;

/** One open event stream. Small on purpose: thousands of them are open at once. */
export type ChatStream = {
  readonly res: ServerResponse;
  readonly events: StreamEvents;
  /** Who may lose access; undefined for those who cannot. */
  readonly viewer: Viewer | undefined;
  /** The last revision that was written, or that the client said it has. */
  seen: Position;
  /** False until the first event, which is a snapshot. */
  begun: boolean;
  /** True while the stream is being opened, and while the client does not read: nothing is written then. */
  waiting: boolean;
  /** The latest revision, held back while waiting. Bytes are shared with the other streams. */
  pending: Revision | undefined;
  /** The last revision of the message before that of `pending`, in whose middle the client was. */
  pendingFinal: Revision | undefined;
  closing: boolean;
};

export function createStream(res: ServerResponse, events: StreamEvents, viewer: Viewer | undefined): ChatStream {
  return {
    res,
    events,
    viewer,
    seen: NOWHERE,
    begun: false,
    waiting: true,
    pending: undefined,
    pendingFinal: undefined,
    closing: false,
  };
}

function hold(stream: ChatStream, revision: Revision): void {
  const { pending, seen } = stream;
  if (pending && pending.position.messageId !== revision.position.messageId) {
    // The latest wins inside a message; that a message is over is not kept from whoever saw it begin.
    if (seen === NOWHERE || pending.position.messageId === seen.messageId) stream.pendingFinal = pending;
  }
  stream.pending = revision;
}

/** Until the client has read what was written: few streams wait at a time, so that the others hold no listeners for it. */
function awaitReader(stream: ChatStream): void {
  const { res, events } = stream;
  stream.waiting = true;
  const stalled = () => {
    events.stalled();
    res.destroy();
  };
  res.once('timeout', stalled);
  res.once('drain', () => {
    res.off('timeout', stalled);
    res.setTimeout(0);
    stream.waiting = res.writableEnded;
    flush(stream);
  });
  // Node's time-out of a socket begins anew with each part of what is written that goes out.
  res.setTimeout(events.stallMs);
}

/** The kernel and Node hold what the client did not read yet: more is written when that is gone. */
function push(stream: ChatStream, bytes: Buffer): void {
  if (!stream.res.write(bytes)) awaitReader(stream);
}

function write(stream: ChatStream, revision: Revision): void {
  const { position } = revision;
  if (!isAfter(position, stream.seen)) return;
  const missed = position.messageId === stream.seen.messageId ? position.revision - stream.seen.revision - 1 : 0;
  if (missed > 0 && stream.begun) stream.events.skipped(missed);
  const bytes = stream.begun ? revision.update() : revision.snapshot();
  stream.begun = true;
  stream.seen = position;
  stream.events.sent();
  push(stream, bytes);
}

/** Writes what was held back, as far as the client reads. */
function flush(stream: ChatStream): void {
  while (!stream.waiting && stream.pendingFinal) {
    const { pendingFinal } = stream;
    stream.pendingFinal = undefined;
    write(stream, pendingFinal);
  }
  while (!stream.waiting && stream.pending) {
    const { pending } = stream;
    stream.pending = undefined;
    write(stream, pending);
  }
  if (!stream.waiting && stream.closing && !stream.res.writableEnded) stream.res.end(CLOSED);
}

/** Hands a revision to a stream: written at once, or held until the client reads again. */
export function offer(stream: ChatStream, revision: Revision): void {
  if (stream.closing || !isAfter(revision.position, stream.seen)) return;
  if (stream.waiting) hold(stream, revision);
  else write(stream, revision);
}

/** Says that the chat is closed, after what is held back, and ends the stream. */
export function closeStream(stream: ChatStream): void {
  if (stream.closing) return;
  stream.closing = true;
  flush(stream);
}

/** Ends the stream without a word: the client connects again, elsewhere. */
export function endStream(stream: ChatStream): void {
  stream.closing = true;
  stream.waiting = true;
  if (stream.res.headersSent) stream.res.end();
}

/** Keeps proxies from taking the connection for dead. */
export function sendKeepAlive(stream: ChatStream): void {
  if (!stream.waiting && !stream.closing) push(stream, COMMENT);
}

// A client that is gone shows as a closed response, which the hub waits for.
function ignore(): void {}

/** What a stream begins with: what the client has, and what it gets first, in this order. */
export type Beginning = Readonly<{ seen: Position; first: readonly Revision[] }>;

/** The last revision of an earlier message is an update of what the client has; the latest message is a snapshot. */
function beginningBytes(first: readonly Revision[]): Buffer {
  const last = first.length - 1;
  return Buffer.concat([RETRY, ...first.map((one, index) => (index === last ? one.snapshot() : one.update()))]);
}

/**
 * Node joins the head of a response from fifty pieces, and keeps these as long as it is open: 1.6 KiB, and half of that
 * once a pattern has looked at the whole.
 */
function joinHead(res: ServerResponse): void {
  const head: unknown = Reflect.get(res, '_header');
  if (typeof head === 'string') /^HTTP/.test(head);
}

/** Writes the first events, in one piece with the headers. Later revisions may have come to the stream meanwhile. */
export function begin(stream: ChatStream, { seen, first }: Beginning): void {
  const { res, events } = stream;
  joinHead(res);
  res.on('error', ignore);
  stream.seen = first.at(-1)?.position ?? seen;
  stream.begun = stream.seen !== NOWHERE;
  stream.waiting = false;
  for (const _ of first) events.sent();
  push(stream, beginningBytes(first));
  flush(stream);
}
