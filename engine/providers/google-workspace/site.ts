import { Readable } from 'node:stream';
import type { z } from 'zod';
import { googleSite } from '../google/identity.ts';
import type { OAuth2Credential } from '../oauth/index.ts';
import { ProviderError, type ProviderRequest, type ProviderStream, parsed } from '../outgoing/index.ts';
import { accountBucket } from '../provider.ts';
import { CursorError, type ReadCall, type ToolCall, type ToolFile, toolsOf, type WriteCall } from '../tool.ts';

export const KEY = 'google-workspace';

const ORIGINS = {
  gmail: 'https://gmail.googleapis.com',
  calendar: 'https://www.googleapis.com',
  drive: 'https://www.googleapis.com',
  docs: 'https://docs.googleapis.com',
  sheets: 'https://sheets.googleapis.com',
  tasks: 'https://tasks.googleapis.com',
} as const;
export type ServiceKey = keyof typeof ORIGINS;

/** Below Google's limits of one user: calls at once, and a second. Docs and Sheets take 60 writes a minute. */
const PACES: Readonly<Record<ServiceKey, readonly [number, number]>> = {
  gmail: [50, 5],
  calendar: [30, 5],
  drive: [50, 10],
  docs: [30, 1],
  sheets: [30, 1],
  tasks: [30, 5],
};

export const site = googleSite(KEY, [...new Set(Object.values(ORIGINS))]);

export const { read, write } = toolsOf<OAuth2Credential, null>();
export type Read<A = unknown> = ReadCall<A, OAuth2Credential, null>;
export type Write<A = unknown> = WriteCall<A, OAuth2Credential, null>;
export type Call = Pick<ToolCall<unknown, OAuth2Credential, null>, 'context' | 'access'>;

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export function urlOf(service: ServiceKey, path: string, query: Query = {}): URL {
  const url = new URL(`${ORIGINS[service]}${path}`);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}

/** What every request has. */
export function requestOf({ context, access }: Call, service: ServiceKey) {
  const [capacity, perSecond] = PACES[service];
  return {
    headers: { authorization: `Bearer ${access.credential.accessToken}` },
    buckets: [accountBucket(`${KEY}:${service}`, context, capacity, perSecond)],
    signal: context.signal,
  };
}

/** Messages and documents come with all of their parts. */
const MAX_BYTES = 16 * 1024 * 1024;

export function readJson<S extends z.ZodType>(call: Call, service: ServiceKey, url: URL, schema: S) {
  const request = { ...requestOf(call, service), effect: 'read', url, maxBytes: MAX_BYTES } as const;
  return call.context.client.json(site, request, schema);
}

/** As `readJson` of a list: what is wrong with the cursor of a page is its caller's. @throws CursorError */
export async function readPage<S extends z.ZodType>(
  call: Read,
  service: ServiceKey,
  url: URL,
  schema: S,
): Promise<z.output<S>> {
  if (call.cursor === undefined) return readJson(call, service, url, schema);
  if (!/^[\x21-\x7e]{1,4000}$/.test(call.cursor)) throw new CursorError();
  url.searchParams.set('pageToken', call.cursor);
  try {
    return await readJson(call, service, url, schema);
  } catch (error) {
    // The same arguments without it were good.
    throw error instanceof ProviderError && error.status === 400 ? new CursorError() : error;
  }
}

export function writeJson<S extends z.ZodType>(
  call: Call,
  service: ServiceKey,
  given: Readonly<{ method: NonNullable<ProviderRequest['method']>; url: URL; body: unknown }>,
  schema: S,
): Promise<z.output<S>> {
  const { headers, ...rest } = requestOf(call, service);
  const { method, url } = given;
  const body = JSON.stringify(given.body);
  const request = { ...rest, effect: 'write', method, url, body } as const;
  const all = { ...headers, 'content-type': 'application/json; charset=UTF-8' };
  return call.context.client.json(site, { ...request, headers: all }, schema);
}

/** Of one file, in either direction. The time-out of its call is shorter. */
const STREAM_TOTAL_MS = 600_000;
const STREAM_IDLE_MS = 30_000;
/** As large as files are. */
const MAX_FILE_BYTES = 1024 ** 3;

/** A response whose body is read as it comes. */
export function openStream(call: Call, service: ServiceKey, url: URL): Promise<ProviderStream> {
  const times = { idleMs: STREAM_IDLE_MS, totalMs: STREAM_TOTAL_MS, maxBytes: MAX_FILE_BYTES };
  return call.context.client.open(site, { ...requestOf(call, service), ...times, url });
}

/**
 * The bytes of a file of the call. Where they end early, so does the request, and Google takes none that is not whole: nothing was done.
 * @throws ProviderError
 */
export async function* fileBytes(file: Pick<ToolFile, 'open'>): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* await file.open();
  } catch {
    throw new ProviderError(KEY, 'failed', 'A file could not be read to its end as it was approved.', {
      isRefusal: true,
    });
  }
}

export type SentBody = Readonly<{ contentType: string; sizeBytes: number; chunks: AsyncIterable<Uint8Array> }>;

/** Sends a body as it is made, once. A body that ends before its length is broken off, and not taken by Google. */
export async function postStream<S extends z.ZodType>(
  call: Call,
  service: ServiceKey,
  { url, body }: Readonly<{ url: URL; body: SentBody }>,
  schema: S,
): Promise<z.output<S>> {
  const { headers, ...rest } = requestOf(call, service);
  const {
    status,
    headers: got,
    ...response
  } = await call.context.client.open(site, {
    ...rest,
    method: 'POST',
    url,
    headers: { ...headers, 'content-type': body.contentType, 'content-length': String(body.sizeBytes) },
    body: Readable.from(body.chunks, { objectMode: false }),
    idleMs: STREAM_TOTAL_MS,
    totalMs: STREAM_TOTAL_MS,
    maxBytes: MAX_BYTES,
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  return parsed(KEY, { status, headers: got, body: Buffer.concat(chunks) }, schema);
}
