import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Queries } from '../../../engine/db/call.ts';
import { CHAT_CHANNEL, chatPayload } from '../../../engine/db/channels.ts';
import type { Listener } from '../../../engine/db/listen.ts';
import type { Notifier } from '../../../engine/db/notify.ts';
import { organizationNotFound } from '../../../engine/db/scope.ts';
import { createThrottle, logThrottled } from '../../../engine/log.ts';
import type { OwnerCaller } from '../../http/caller.ts';
import { retryTransient, serviceUnavailable } from '../../http/errors.ts';
import type { Metrics } from '../../http/metrics.ts';
import { endUnauthorized } from './access.ts';
import { type Change, readChanges, readOpening } from './heads.ts';
import { createKeepAlive } from './keep_alive.ts';
import { isAfter, type Position, parseEventId } from './position.ts';
import { begin, type ChatStream, closeStream, createStream, endStream, offer, type StreamEvents } from './stream.ts';
import { viewerOf } from './viewer.ts';

// Reads at once: a reconnect looks at all chats, and must leave connections to the requests.
const MAX_READS = 4;
const MAX_BATCH = 100;
const POLL_INTERVAL_MS = 2_000;
// The looks of `POLL_INTERVAL_MS` take at most this share of the time, whatever the number of organizations.
const POLL_SHARE = 0.1;
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
  keepAliveMs?: number;
  /** How long a subject that was found to be a member is taken for one. */
  accessMs?: number;
}>;

export type ChatStreams = Readonly<{
  /**
   * Responds with the event stream of a chat (docs/interface.md 6), which stays open when this returns, as long as the
   * caller's token and membership last.
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
type Subscription = {
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
  const subscriptions = new Map<string, Subscription>();
  /** Subscriptions to read, by organization. */
  const dirty = new Map<string, Set<Subscription>>();
  /** At most one read an organization, so that what is read later is never older. */
  const reading = new Map<string, Promise<boolean>>();
  const keepAlive = createKeepAlive(options.keepAliveMs);
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

  function join(stream: ChatStream, organizationId: string, chatId: string): Subscription {
    const key = chatPayload(organizationId, chatId);
    const subscription = subscriptions.get(key) ?? {
      organizationId,
      chatId,
      streams: new Set(),
      known: undefined,
      missed: false,
    };
    subscriptions.set(key, subscription);
    subscription.streams.add(stream);
    metrics.chatStreams.inc();
    startPolling();
    return subscription;
  }

  function leave(stream: ChatStream, subscription: Subscription): void {
    if (!subscription.streams.delete(stream)) return;
    metrics.chatStreams.dec();
    keepAlive.remove(stream);
    if (subscription.streams.size > 0) return;
    subscriptions.delete(chatPayload(subscription.organizationId, subscription.chatId));
    if (subscriptions.size === 0) endPause();
  }

  function mark(subscription: Subscription): void {
    const marked = dirty.get(subscription.organizationId) ?? new Set();
    dirty.set(subscription.organizationId, marked);
    marked.add(subscription);
    if (scheduled) return;
    scheduled = true;
    // After the notifications that came in the same packet.
    setImmediate(() => {
      scheduled = false;
      readDirty();
    });
  }

  function changed(payload: string): void {
    const subscription = subscriptions.get(payload);
    if (subscription) mark(subscription);
  }

  function apply(subscription: Subscription, { closed: over, revisions }: Change): void {
    for (const revision of revisions) {
      if (subscription.known === undefined || isAfter(revision.position, subscription.known))
        subscription.known = revision.position;
      for (const stream of subscription.streams) offer(stream, revision);
    }
    if (over) for (const stream of subscription.streams) closeStream(stream);
  }

  async function read(organizationId: string, batch: readonly Subscription[]): Promise<boolean> {
    try {
      // First, and with its failure nothing is shown: what comes later is not for those who have lost access.
      await endUnauthorized(
        db,
        organizationId,
        batch.flatMap((subscription) => [...subscription.streams]),
        accessMs,
      );
      const chats = batch.flatMap(({ chatId, known }) => (known === undefined ? [] : [{ chatId, known }]));
      const changes = chats.length > 0 ? await readChanges(db, organizationId, chats) : new Map<string, Change>();
      for (const subscription of batch) {
        const change = changes.get(subscription.chatId);
        if (change) apply(subscription, change);
      }
      return true;
    } catch (error) {
      logThrottled(log, throttle, 'event streams could not read their chats', error);
      return false;
    }
  }

  function startRead(organizationId: string, batch: readonly Subscription[]): Promise<boolean> {
    const done = read(organizationId, batch).finally(() => {
      reading.delete(organizationId);
      readDirty();
    });
    reading.set(organizationId, done);
    return done;
  }

  function takeDirty(organizationId: string, marked: Set<Subscription>): Subscription[] {
    const batch = [...marked].slice(0, MAX_BATCH);
    for (const subscription of batch) {
      marked.delete(subscription);
      subscription.missed ||= subscription.known === undefined;
    }
    if (marked.size === 0) dirty.delete(organizationId);
    return batch.filter((subscription) => subscription.streams.size > 0);
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
  function batches(): (readonly [string, readonly Subscription[]])[] {
    const byOrganization = Map.groupBy(subscriptions.values(), (subscription) => subscription.organizationId);
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
  async function pollAll(roundMs: number): Promise<void> {
    const round = batches();
    let worked = 0;
    for (const [organizationId, batch] of round) {
      await pause(roundMs / round.length);
      while (reading.has(organizationId)) await reading.get(organizationId);
      if (closed || subscriptions.size === 0) break;
      const followed = batch.filter((subscription) => subscription.streams.size > 0);
      if (followed.length === 0) continue;
      const began = performance.now();
      if (!(await startRead(organizationId, followed))) {
        // Postgres is away: the others would find no more than this one.
        await pause(POLL_INTERVAL_MS);
        break;
      }
      worked += performance.now() - began;
    }
    sweeping = false;
    startPolling(worked / POLL_SHARE);
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
  function startPolling(atLeastMs = 0): void {
    if (closed || sweeping || subscriptions.size === 0) return;
    sweeping = true;
    void pollAll(Math.max(POLL_INTERVAL_MS, atLeastMs));
  }

  /** What one stream read at its opening, for the others of its subscription: theirs may have been older, or be newer. */
  function compare(subscription: Subscription, at: Position): void {
    const differs =
      subscription.known !== undefined && (isAfter(at, subscription.known) || isAfter(subscription.known, at));
    if (subscription.known === undefined || isAfter(subscription.known, at)) subscription.known = at;
    if (differs || subscription.missed) mark(subscription);
    subscription.missed = false;
  }

  const stopListening = [
    options.listener.subscribe(CHAT_CHANNEL, (payload, sender) => {
      if (sender !== options.notifier.sender()) changed(payload);
    }),
    options.listener.onResync(() => {
      for (const subscription of subscriptions.values()) mark(subscription);
    }),
  ];

  return {
    async open(res, { organizationId, chatId, caller }, lastEventId) {
      if (closed) throw serviceUnavailable('The service is stopping. Connect again.');
      const stream = createStream(res, events, viewerOf(caller));
      // Joined before it reads: what changes from here on reaches it, whichever comes first.
      const subscription = join(stream, organizationId, chatId);
      res.on('close', () => leave(stream, subscription));
      try {
        const opening = await retryTransient(() => readOpening(db, organizationId, chatId, parseEventId(lastEventId)));
        if (closed) throw serviceUnavailable('The service is stopping. Connect again.');
        if (res.destroyed) return;
        if (stream.closing) throw organizationNotFound();
        res.writeHead(200, EVENT_STREAM);
        begin(stream, opening);
        compare(subscription, opening.at);
        if (opening.closed) closeStream(stream);
        else keepAlive.add(stream);
      } catch (error) {
        leave(stream, subscription);
        throw error;
      }
    },
    changed,
    async close() {
      closed = true;
      endPause();
      keepAlive.stop();
      for (const stop of stopListening) stop();
      for (const subscription of subscriptions.values()) for (const stream of subscription.streams) endStream(stream);
      await Promise.all(reading.values());
    },
  };
}
