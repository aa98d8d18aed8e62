import { z } from 'zod';
import { maskedId } from '../mask.ts';
import { defineProvider } from '../provider.ts';
import { type At, credential, DOMAIN, originOf, run, settings } from './database.ts';
import { tools } from './tools.ts';

/** @returns the name of its host */
async function ping(at: At): Promise<string> {
  await run(at, 'read', ['PING'], z.literal('PONG'));
  return new URL(originOf(at.access)).hostname;
}

export const upstashRedis = defineProvider({
  key: 'upstash-redis',
  title: 'Upstash Redis',
  connections: ['bearer_token'],
  services: [],
  settings: { schema: settings, required: true, beforeConnection: true, address: 'restUrl' },
  credential,
  tools,
  datasets: [],
  async verify(context, access) {
    const hostname = await ping({ context, access });
    return { subject: hostname, label: `${maskedId(hostname.slice(0, -DOMAIN.length))}${DOMAIN}` };
  },
  async discover(context, access) {
    await ping({ context, access });
    return { items: [], truncated: false };
  },
});
