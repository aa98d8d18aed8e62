import { z } from 'zod';
import { maskedId } from '../mask.ts';
import { ProviderError, type Site } from '../outgoing/index.ts';
import { type Access, accountBucket, defineProvider, type ProviderContext } from '../provider.ts';
import { choices } from '../texts.ts';
import { tools } from './tools.ts';

const DOMAIN = '.upstash.io';

const credential = z.strictObject({
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

const settings = z.strictObject({
  kind: z.literal('upstash_redis'),
  restUrl: restUrl.transform((text) => new URL(text).origin),
  keyScope: z.strictObject({
    kind: z.literal('prefixes'),
    /** Keys outside of them are never read or written. */
    prefixes: choices(z.string().min(1).max(200), 50).min(1),
  }),
});

const refusal = z.object({ error: z.string() });

function siteOf(origin: string): Site {
  return {
    provider: 'upstash-redis',
    origins: [origin],
    // `ERR …`, `WRONGPASS …`: its first word is the code, the rest is a sentence.
    readRefusal: ({ json }) => ({ code: refusal.safeParse(json).data?.error.split(' ', 1)[0] }),
  };
}

type Connection = Access<z.output<typeof credential>, z.output<typeof settings>>;

async function ping(context: ProviderContext, access: Connection): Promise<string> {
  if (access.settings === null) {
    throw new ProviderError('upstash-redis', 'refused', 'The settings name the database, and there are none yet.');
  }
  const origin = access.settings.restUrl;
  await context.client.json(
    siteOf(origin),
    {
      method: 'POST',
      effect: 'read',
      url: `${origin}/`,
      headers: { authorization: `Bearer ${access.credential.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(['PING']),
      buckets: [accountBucket('upstash-redis', context, 100, 50)],
      signal: context.signal,
    },
    z.object({ result: z.literal('PONG') }),
  );
  return new URL(origin).hostname;
}

export const upstashRedis = defineProvider({
  key: 'upstash-redis',
  title: 'Upstash Redis',
  connections: ['bearer_token'],
  services: [],
  settings: { schema: settings, required: true, beforeConnection: true, address: ({ restUrl }) => restUrl },
  credential,
  tools,
  datasets: [],
  async verify(context, access) {
    const hostname = await ping(context, access);
    return { subject: hostname, label: `${maskedId(hostname.slice(0, -DOMAIN.length))}${DOMAIN}` };
  },
  async discover(context, access) {
    await ping(context, access);
    return { items: [], truncated: false };
  },
});
