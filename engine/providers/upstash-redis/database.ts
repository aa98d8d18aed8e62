import { z } from 'zod';
import { ProviderError, parsed, providerCode, type Site } from '../outgoing/index.ts';
import { type Access, accountBucket, type Effect, type ProviderContext } from '../provider.ts';
import { choices } from '../texts.ts';

const KEY = 'upstash-redis';
export const DOMAIN = '.upstash.io';
/** As long as results of tools are. */
const MAX_BYTES = 5 * 1024 * 1024;

export const credential = z.strictObject({
  kind: z.literal('bearer_token'),
  token: z
    .string()
    .max(1_000)
    .regex(/^[\x21-\x7e]{10,}$/, 'must be a REST token of Upstash'),
});

/** The token goes to this address: it is one of Upstash, and of nobody else. */
const restUrl = z
  .string()
  .max(300)
  .refine((text) => {
    const url = URL.parse(text);
    if (url?.protocol !== 'https:' || url.port !== '' || url.username !== '' || url.password !== '') return false;
    return url.hostname.endsWith(DOMAIN) && url.pathname === '/' && url.search === '' && url.hash === '';
  }, 'must be https://<name>.upstash.io');

export const settings = z.strictObject({
  kind: z.literal('upstash_redis'),
  restUrl: restUrl.transform((text) => new URL(text).origin),
  keyScope: z.strictObject({
    kind: z.literal('prefixes'),
    /** Keys outside of them are never read or written. */
    prefixes: choices(z.string().min(1).max(200), 50).min(1),
  }),
});

export type Credential = z.output<typeof credential>;
export type Settings = z.output<typeof settings>;
type Connection = Access<Credential, Settings>;

const refusal = z.object({ error: z.string() });

/** `ERR …`, `WRONGPASS …`: its first word is the code, the rest is a sentence. */
const codeOf = (json: unknown) => refusal.safeParse(json).data?.error.split(' ', 1)[0];

/** @throws ProviderError where the settings do not name it yet */
export function originOf({ settings: chosen }: Connection): string {
  if (chosen) return chosen.restUrl;
  throw new ProviderError(KEY, 'refused', 'The settings name the database, and there are none yet.');
}

export type At = Readonly<{ context: ProviderContext; access: Connection }>;

/** Runs a command, a write once. @throws ProviderError, the signal's reason */
export async function run<S extends z.ZodType>(
  { context, access }: At,
  effect: Effect,
  command: readonly (string | number)[],
  result: S,
): Promise<z.output<S>> {
  const origin = originOf(access);
  const site: Site = { provider: KEY, origins: [origin], readRefusal: ({ json }) => ({ code: codeOf(json) }) };
  const response = await context.client.send(site, {
    method: 'POST',
    effect,
    url: `${origin}/`,
    headers: { authorization: `Bearer ${access.credential.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(command),
    buckets: [accountBucket(KEY, context, 100, 50)],
    signal: context.signal,
    maxBytes: MAX_BYTES,
  });
  const { error } = parsed(KEY, response, z.looseObject({ error: z.string().optional() }));
  if (error !== undefined) {
    const facts = {
      status: response.status,
      code: providerCode(codeOf({ error }), [access.credential.token]),
      isRefusal: true,
    };
    throw new ProviderError(KEY, 'failed', 'The database refuses the command.', facts);
  }
  const said = z.looseObject({ result: z.unknown() }).transform((body): unknown => body.result);
  return parsed(KEY, response, said.pipe(result));
}
