import type { MongoClient } from 'mongodb';
import { z } from 'zod';
import { ProviderError, providerCode, undone } from '../outgoing/index.ts';
import { accountBucket, type ProviderContext } from '../provider.ts';
import { openSocksProxy } from './socks_proxy.ts';

const KEY = 'mongodb';
const DEFAULT_PORT = 27_017;
const LOOK: Bounds = { totalMs: 20_000, socketMs: 10_000, maxBytes: 64 * 1024 * 1024, burst: 10, perSecond: 1 };
const TOOL: Bounds = { totalMs: 30_000, socketMs: 25_000, maxBytes: 16 * 1024 * 1024, burst: 30, perSecond: 5 };

/** Of one session, all connections together; and how often there may be one. */
type Bounds = Readonly<{ totalMs: number; socketMs: number; maxBytes: number; burst: number; perSecond: number }>;

const hostname = z
  .string()
  .max(253)
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/, 'must be the name of a server, without a port');

/** The parts of a connection string. There are no options among them: some of those read files, or turn checks off. */
export const credential = z
  .strictObject({
    kind: z.literal('mongodb'),
    host: hostname,
    port: z.int().min(1_024).max(65_535).optional(),
    /** The name has SRV records, which name the servers. */
    srv: z.boolean(),
    username: z.string().min(1).max(200),
    password: z.string().min(1).max(1_000),
    authSource: z.string().min(1).max(63).optional(),
    tls: z.boolean(),
  })
  .refine(({ srv, port }) => !srv || port === undefined, { path: ['port'], message: 'SRV records name the port' })
  .refine(({ srv, tls }) => !srv || tls, { path: ['tls'], message: 'is required with SRV records' });

export type MongoCredential = z.output<typeof credential>;

export const authSourceOf = ({ authSource }: MongoCredential) => authSource ?? 'admin';

const AUTHENTICATION_FAILED = new Set([18, 8_000]);
const UNAUTHORIZED = new Set([13, 31]);
const TIME_IS_OVER = 50;
/** By these a server says that a write is not one it can do: values, names, types, a duplicate, a rule of the collection. */
const UNDOABLE = new Set([2, 9, 14, 26, 28, 40, 52, 54, 55, 56, 57, 66, 121, 166, 10_334, 11_000, 17_280, 17_419]);

const serverError = z.object({ code: z.number(), codeName: z.string().optional() });

/** What the driver throws, in our words. Its messages hold hosts, and what the server said. */
function mongoFailure(error: unknown, { password }: MongoCredential): unknown {
  if (error instanceof ProviderError || !(error instanceof Error)) return error;
  if (!error.name.startsWith('Mongo')) {
    // Looking the SRV records up, the driver passes on what DNS says.
    const isDns = 'syscall' in error && /^query/.test(String(error.syscall));
    return isDns ? new ProviderError(KEY, 'unavailable', 'The name of the server does not lead to an address.') : error;
  }
  if (/Network|ServerSelection|PoolCleared|OperationTimeout/.test(error.name)) {
    return new ProviderError(KEY, 'unavailable', 'The server cannot be reached, or does not respond in time.');
  }
  const { code, codeName } = serverError.safeParse(error).data ?? {};
  const facts = { code: providerCode(codeName, [password]) };
  if (code === undefined) return new ProviderError(KEY, 'failed', 'The server refuses the connection.');
  if (UNDOABLE.has(code) && error.name === 'MongoServerError') {
    return new ProviderError(KEY, 'failed', 'The server refuses the request.', { ...facts, isRefusal: true });
  }
  if (AUTHENTICATION_FAILED.has(code)) {
    return new ProviderError(KEY, 'rejected', 'The server does not accept user and password.', facts);
  }
  if (UNAUTHORIZED.has(code)) return new ProviderError(KEY, 'forbidden', 'The user may not do this.', facts);
  if (code === TIME_IS_OVER) return new ProviderError(KEY, 'unavailable', 'The server took too long.', facts);
  return new ProviderError(KEY, 'failed', 'The server refuses the request.', facts);
}

/** Rejects when a server may not be called, when the time is over, or when nobody waits any more. */
function ended(
  refused: Promise<ProviderError>,
  { signal, totalMs }: Readonly<{ signal: AbortSignal | undefined; totalMs: number }>,
): { promise: Promise<never>; clear: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  // The driver would try it again until its own time is over.
  void refused.then(reject);
  const late = () => reject(new ProviderError(KEY, 'unavailable', 'The server did not respond in time.'));
  const timer = setTimeout(late, totalMs);
  const gone = () => reject(signal?.reason);
  signal?.addEventListener('abort', gone, { once: true });
  promise.catch(() => {});
  return {
    promise,
    clear() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', gone);
    },
  };
}

type Run<T> = (client: MongoClient) => Promise<T>;

/**
 * One session with the official driver, whose connections all go through the guard. It is bounded in bytes and time, and closed
 * at its end.
 * @throws ProviderError, or the signal's reason
 */
export function withMongo<T>(context: ProviderContext, given: MongoCredential, run: Run<T>): Promise<T> {
  return counted(context, given, LOOK, run);
}

/** The same for a tool that reads, as long as a call may take. */
export function withMongoRead<T>(context: ProviderContext, given: MongoCredential, run: Run<T>): Promise<T> {
  return counted(context, given, TOOL, run);
}

/** For a write: what comes before it is connected is no part of it. */
export function withMongoWrite<T>(context: ProviderContext, given: MongoCredential, run: Run<T>): Promise<T> {
  let isConnected = false;
  const connected: Run<T> = async (client) => {
    await client.connect();
    isConnected = true;
    return run(client);
  };
  return counted(context, given, TOOL, connected).catch((error: unknown) => {
    throw isConnected ? error : undone(error, KEY, context.signal);
  });
}

function counted<T>(context: ProviderContext, given: MongoCredential, bounds: Bounds, run: Run<T>): Promise<T> {
  const buckets = [accountBucket(KEY, context, bounds.burst, bounds.perSecond)];
  const call = { provider: KEY, method: 'SESSION', target: given.host, buckets, signal: context.signal };
  return context.client.counted(call, () => session(context, given, bounds, run));
}

async function session<T>(context: ProviderContext, given: MongoCredential, bounds: Bounds, run: Run<T>): Promise<T> {
  context.signal?.throwIfAborted();
  // A large library, which only organizations with such a connection need.
  const { MongoClient: Client } = await import('mongodb');
  await using proxy = await openSocksProxy((...target) => context.client.connect(KEY, ...target), bounds.maxBytes);
  const place = given.srv ? given.host : `${given.host}:${given.port ?? DEFAULT_PORT}`;
  const end = ended(proxy.refused, { signal: context.signal, totalMs: bounds.totalMs });
  let client: MongoClient | undefined;
  try {
    client = new Client(`mongodb${given.srv ? '+srv' : ''}://${place}/`, {
      ...proxy.options,
      auth: { username: given.username, password: given.password },
      authSource: authSourceOf(given),
      tls: given.tls,
      appName: 'business-runner',
      maxPoolSize: 2,
      maxConnecting: 1,
      connectTimeoutMS: 5_000,
      serverSelectionTimeoutMS: 8_000,
      socketTimeoutMS: bounds.socketMs,
      waitQueueTimeoutMS: 10_000,
      readPreference: 'primaryPreferred',
      retryWrites: false,
    });
    return await Promise.race([run(client), end.promise]);
  } catch (error) {
    context.signal?.throwIfAborted();
    throw mongoFailure(error, given);
  } finally {
    end.clear();
    await client?.close().catch(() => {});
  }
}
