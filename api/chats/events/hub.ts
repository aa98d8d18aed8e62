import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Queries } from '../../../engine/db/call.ts';
import type { Listener } from '../../../engine/db/listen.ts';
import type { Notifier } from '../../../engine/db/notify.ts';
import { organizationNotFound } from '../../../engine/db/scope.ts';
import { createThrottle, logThrottled } from '../../../engine/log.ts';
import type { OwnerCaller } from '../../http/caller.ts';
import { retryTransient, serviceUnavailable } from '../../http/errors.ts';
import type { Metrics } from '../../http/metrics.ts';
import { endUnauthorized, viewerOf } from './access.ts';
import { type Change, readChanges, readOpening } from './heads.ts';
import { createBeats } from './keep_alive.ts';
import { isAfter, type Position, parseEventId } from './position.ts';
import { begin, type ChatStream, closeStream, createStream, endStream, offer, type StreamEvents } from './stream.ts';

export const CHAT_CHANNEL = 'runner_chat';

/** What a notification of the channel carries, and what a chat is known by here: ids alone. */
export function chatPayload(organizationId: string, chatId: string): string {
  return `${organizationId} ${chatId}`;
}

// Reads at once: a reconnect looks at all chats, and must leave connections to the requests.
const MAX_READS = 4;
const MAX_BATCH = 100;
const LOOK_AGAIN_MS = 2_000;
// The looks of `LOOK_AGAIN_MS` take at most this share of the time, whatever the number of organizations.
const LOOK_SHARE = 0.1;
const AFTER_ERROR_MS = 500;
const STALL_MS = 60_000;
const ACCESS_MS = 2_000;

export type ChatStreamsOptions = Readonly<{
  db: Queries;
  listener: Pick<Listener, 'subscribe' | 'onResync'>;
  notifier: Pick<Notifier, 'sender'>;
  metrics: Metrics;
  log: Logger;
  /** How long a client may read nothing. */
  stallMs?: number;
  /** Between two comment lines of a stream. */
  beatMs?: number;
  /** How long a subject that was found to be a member is taken for one. */
  accessMs?: number;
}>;

export type ChatStreams = Readonly<{
  /**
   * Answers with the event stream of a chat (contract 6), which stays open when this returns, as long as the caller's
   * token and membership last.
   * @throws Problem 404 `organization_not_found` or `chat_not_found`, and 503, before anything is sent
   */
  open(
    res: ServerResponse,
    chat: Readonly<{ organizationId: string; chatId: string; caller: OwnerCaller }>,
    lastEventId?: string,
  ): Promise<void>;
  /** This process has changed a chat, and committed: its own streams need not wait for the notification. */
  changed(payload: string): void;
  /** Ends all streams, so that clients connect elsewhere, and refuses new ones. */
  close(): Promise<void>;
}>;

/** The open streams of one chat. */
type Room = {
  readonly organizationId: string;
  readonly chatId: string;
  readonly streams: Set<ChatStream>;
  /** All streams have been offered this and what came before; undefined until the first has read. */
  known: Position | undefined;
  /** Something changed while the first stream was reading, maybe too late for its read. */
  missed: boolean;
};

/** Never compressed, stored or gathered on the way. */
export const EVENT_STREAM = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
};

/** One hub a process: it hears of changes over the one LISTEN connection and reads each once for all streams of the chat. */
export function createChatStreams(options: ChatStreamsOptions): ChatStreams {
  const { db, metrics, log, accessMs = ACCESS_MS } = options;
  const rooms = new Map<string, Room>();
  /** Rooms to look at, by organization. */
  const dirty = new Map<string, Set<Room>>();
  /** At most one read an organization, so that what is read later is never older. */
  const reading = new Map<string, Promise<boolean>>();
  const beats = createBeats(options.beatMs);
  const throttle = createThrottle();
  let scheduled = false;
  let sweeping = false;
  let endPause = (): void => {};
  let closed = false;

  const events: StreamEvents = {
    stallMs: options.stallMs ?? STALL_MS,
    sent: () => metrics.chatRevisions.inc({ result: 'sent' }),
    skipped: (count) => metrics.chatRevisions.inc({ result: 'skipped' }, count),
    stalled: () => metrics.chatStreamsCut.inc(),
  };

  function join(stream: ChatStream, organizationId: string, chatId: string): Room {
    const key = chatPayload(organizationId, chatId);
    const room = rooms.get(key) ?? { organizationId, chatId, streams: new Set(), known: undefined, missed: false };
    rooms.set(key, room);
    room.streams.add(stream);
    metrics.chatStreams.inc();
    look();
    return room;
  }

  function leave(stream: ChatStream, room: Room): void {
    if (!room.streams.delete(stream)) return;
    metrics.chatStreams.dec();
    beats.remove(stream);
    if (room.streams.size > 0) return;
    rooms.delete(chatPayload(room.organizationId, room.chatId));
    if (rooms.size === 0) endPause();
  }

  function mark(room: Room): void {
    const marked = dirty.get(room.organizationId) ?? new Set();
    dirty.set(room.organizationId, marked);
    marked.add(room);
    if (scheduled) return;
    scheduled = true;
    // After the notifications that came in the same packet.
    setImmediate(() => {
      scheduled = false;
      readDirty();
    });
  }

  function changed(payload: string): void {
    const room = rooms.get(payload);
    if (room) mark(room);
  }

  function apply(room: Room, { closed: over, revisions }: Change): void {
    for (const revision of revisions) {
      if (room.known === undefined || isAfter(revision.position, room.known)) room.known = revision.position;
      for (const stream of room.streams) offer(stream, revision);
    }
    if (over) for (const stream of room.streams) closeStream(stream);
  }

  async function read(organizationId: string, batch: readonly Room[]): Promise<boolean> {
    try {
      // First, and with its failure nothing is shown: what comes later is not for those who have lost access.
      await endUnauthorized(
        db,
        organizationId,
        batch.flatMap((room) => [...room.streams]),
        accessMs,
      );
      const chats = batch.flatMap(({ chatId, known }) => (known === undefined ? [] : [{ chatId, known }]));
      const changes = chats.length > 0 ? await readChanges(db, organizationId, chats) : new Map<string, Change>();
      for (const room of batch) {
        const change = changes.get(room.chatId);
        if (change) apply(room, change);
      }
      return true;
    } catch (error) {
      logThrottled(log, throttle, 'event streams could not read their chats', error);
      return false;
    }
  }

  function startRead(organizationId: string, batch: readonly Room[]): Promise<boolean> {
    const done = read(organizationId, batch).finally(() => {
      reading.delete(organizationId);
      readDirty();
    });
    reading.set(organizationId, done);
    return done;
  }

  function takeDirty(organizationId: string, marked: Set<Room>): Room[] {
    const batch = [...marked].slice(0, MAX_BATCH);
    for (const room of batch) {
      marked.delete(room);
      room.missed ||= room.known === undefined;
    }
    if (marked.size === 0) dirty.delete(organizationId);
    return batch.filter((room) => room.streams.size > 0);
  }

  function readDirty(): void {
    for (const [organizationId, marked] of dirty) {
      if (reading.size >= MAX_READS || closed) return;
      if (reading.has(organizationId)) continue;
      const batch = takeDirty(organizationId, marked);
      if (batch.length === 0) continue;
      void startRead(organizationId, batch).then((fine) => {
        if (!fine) setTimeout(() => batch.forEach(mark), AFTER_ERROR_MS);
      });
    }
  }

  /** Everything that is followed, in reads of one organization each. */
  function batches(): (readonly [string, readonly Room[]])[] {
    const byOrganization = Map.groupBy(rooms.values(), (room) => room.organizationId);
    return [...byOrganization].flatMap(([organizationId, all]) =>
      Array.from({ length: Math.ceil(all.length / MAX_BATCH) }, (_, index) => {
        return [organizationId, all.slice(index * MAX_BATCH, (index + 1) * MAX_BATCH)] as const;
      }),
    );
  }

  /**
   * A notification may be lost; the end of an organization, of a membership or of a token sends none. One read after another,
   * evenly over the time of a round: all at once, they would hold up what is written meanwhile.
   */
  async function lookAtAll(roundMs: number): Promise<void> {
    const round = batches();
    let worked = 0;
    for (const [organizationId, batch] of round) {
      await pause(roundMs / round.length);
      while (reading.has(organizationId)) await reading.get(organizationId);
      if (closed || rooms.size === 0) break;
      const followed = batch.filter((room) => room.streams.size > 0);
      if (followed.length === 0) continue;
      const began = performance.now();
      if (!(await startRead(organizationId, followed))) {
        // Postgres is away: the others would find no more than this one.
        await pause(LOOK_AGAIN_MS);
        break;
      }
      worked += performance.now() - began;
    }
    sweeping = false;
    look(worked / LOOK_SHARE);
  }

  /** Until `endPause` at the latest. */
  function pause(forMs: number): Promise<void> {
    if (closed) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, forMs);
    endPause = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }

  /** Begins a round where there is something to look at and none under way. */
  function look(atLeastMs = 0): void {
    if (closed || sweeping || rooms.size === 0) return;
    sweeping = true;
    void lookAtAll(Math.max(LOOK_AGAIN_MS, atLeastMs));
  }

  /** What one stream read at its opening, for the others of its room: theirs may have been older, or be newer. */
  function compare(room: Room, at: Position): void {
    const differs = room.known !== undefined && (isAfter(at, room.known) || isAfter(room.known, at));
    if (room.known === undefined || isAfter(room.known, at)) room.known = at;
    if (differs || room.missed) mark(room);
    room.missed = false;
  }

  const stopListening = [
    options.listener.subscribe(CHAT_CHANNEL, (payload, sender) => {
      if (sender !== options.notifier.sender()) changed(payload);
    }),
    options.listener.onResync(() => {
      for (const room of rooms.values()) mark(room);
    }),
  ];

  return {
    async open(res, { organizationId, chatId, caller }, lastEventId) {
      if (closed) throw serviceUnavailable('The service is stopping. Connect again.');
      const stream = createStream(res, events, viewerOf(caller));
      // Joined before it reads: what changes from here on reaches it, whichever comes first.
      const room = join(stream, organizationId, chatId);
      res.on('close', () => leave(stream, room));
      try {
        const opening = await retryTransient(() => readOpening(db, organizationId, chatId, parseEventId(lastEventId)));
        if (closed) throw serviceUnavailable('The service is stopping. Connect again.');
        if (res.destroyed) return;
        if (stream.closing) throw organizationNotFound();
        res.writeHead(200, EVENT_STREAM);
        begin(stream, opening);
        compare(room, opening.at);
        if (opening.closed) closeStream(stream);
        else beats.add(stream);
      } catch (error) {
        leave(stream, room);
        throw error;
      }
    },
    changed,
    async close() {
      closed = true;
      endPause();
      beats.stop();
      for (const stop of stopListening) stop();
      for (const room of rooms.values()) for (const stream of room.streams) endStream(stream);
      await Promise.all(reading.values());
    },
  };
}
