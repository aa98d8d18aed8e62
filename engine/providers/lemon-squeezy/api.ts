import { z } from 'zod';
import { type Measured, readMeasured } from '../measured.ts';
import type { ProviderRequest, Site } from '../outgoing/index.ts';
import { type Access, accountBucket, type ProviderContext } from '../provider.ts';
import { choices } from '../texts.ts';

export const KEY = 'lemon-squeezy';
export const ORIGIN = 'https://api.lemonsqueezy.com';
export const MAX_STORES = 200;
const MAX_BYTES = 5 * 1024 * 1024;

export const credential = z.strictObject({
  kind: z.literal('api_key'),
  apiKey: z
    .string()
    .max(4_000)
    .regex(/^[\x21-\x7e]{20,}$/, 'must be an API key of Lemon Squeezy'),
});
export type Credential = z.output<typeof credential>;

export const settings = z.strictObject({
  kind: z.literal('lemon_squeezy'),
  /** Empty: no store is allowed. */
  storeIds: choices(z.string().regex(/^\d{1,20}$/, 'must be the id of a store'), MAX_STORES),
});
export type Settings = z.output<typeof settings>;
export type At = Readonly<{ context: ProviderContext; access: Access<Credential, Settings> }>;

/** JSON:API: errors have a status and at times a code. */
const refusal = z.object({ errors: z.array(z.object({ code: z.string().optional() })).min(1) });

const site: Site = {
  provider: KEY,
  origins: [ORIGIN],
  readRefusal: ({ json }) => ({ code: refusal.safeParse(json).data?.errors[0]?.code }),
};

const JSON_API = 'application/vnd.api+json';

function send<S extends z.ZodType>(
  context: ProviderContext,
  { apiKey }: Credential,
  request: Pick<ProviderRequest, 'effect' | 'method' | 'body'> & Readonly<{ path: string; schema: S }>,
): Promise<Measured<z.output<S>>> {
  const { path, schema, ...rest } = request;
  const type = rest.body === undefined ? {} : { 'content-type': JSON_API };
  const full: ProviderRequest = {
    ...rest,
    url: `${ORIGIN}${path}`,
    headers: { authorization: `Bearer ${apiKey}`, accept: JSON_API, ...type },
    // 300 calls a minute.
    buckets: [accountBucket(KEY, context, 60, 5)],
    signal: context.signal,
    maxBytes: MAX_BYTES,
  };
  return readMeasured(context, site, full, schema);
}

/** With the bytes of the response. @throws ProviderError, the signal's reason */
export const readSized = <S extends z.ZodType>(context: ProviderContext, given: Credential, path: string, schema: S) =>
  send(context, given, { effect: 'read', path, schema });

/** @throws ProviderError, the signal's reason */
export const read = async <S extends z.ZodType>(context: ProviderContext, given: Credential, path: string, schema: S) =>
  (await readSized(context, given, path, schema)).data;

/** Sent once. @throws ProviderError, the signal's reason */
export async function write<S extends z.ZodType>({ context, access }: At, path: string, data: object, schema: S) {
  const body = JSON.stringify({ data });
  return (await send(context, access.credential, { effect: 'write', method: 'POST', path, body, schema })).data;
}
