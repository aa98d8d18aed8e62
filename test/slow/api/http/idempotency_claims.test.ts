// A key that is claimed by a process: of work that takes long, and of a process that dies.

import type { ServerResponse } from 'node:http';
import t from 'tap';
import { KEYS } from '../../../engine/integrations/support.ts';
import { json, openServer } from '../../../engine/providers/support.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../../support/api_fixtures.ts';
import { startApi } from '../../../support/api_process.ts';
import { OWNER_TOKEN } from '../../../support/app.ts';
import { createTestDatabase } from '../../../support/database.ts';
import { createClient } from '../../../support/http.ts';
import { makeOrganization } from '../../../support/owner_api.ts';
import { until } from '../../../support/wait.ts';

const database = await createTestDatabase(t);
/** Questions for stores that wait; undefined: they are answered at once. */
let waiting: ServerResponse[] | undefined;
const sendStores = (res: ServerResponse) => json(res, 200, { data: [], meta: { page: { total: 0 } } });
const server = await openServer(t, ({ url }, res) => {
  if (url.pathname === '/v1/users/me') return { data: { id: '7', attributes: { email: 'a@example.com' } } };
  if (waiting) waiting.push(res);
  else sendStores(res);
  return undefined;
});
const environment = {
  DATABASE_URL: database.url,
  OWNER_AUTH: 'open',
  OWNER_TOKENS: OWNER_TOKEN,
  ENCRYPTION_KEYS: KEYS,
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ 'https://api.lemonsqueezy.com': server.origin }),
};
const [first, rest] = [await startApi(t, environment), await startApi(t, environment)];
const [owner, other] = [first, rest].map(({ url }) => createClient(url).as(OWNER_TOKEN)) as [
  ReturnType<typeof createClient>,
  ReturnType<typeof createClient>,
];
const org = { organizationId: (await makeOrganization(owner)).id };
const at = (rest: string) => ownerPath(org, `/integrations${rest}`);
expectSuccess(await owner.post(at(''), { key: 'shop', provider: 'lemon-squeezy' }), 201);
expectSuccess(await owner.put(at('/shop/credential'), { kind: 'api_key', apiKey: 'x'.repeat(40) }), 200);
const discover = (client: typeof owner, key: string) =>
  client.post(at('/shop/discover'), undefined, { headers: { 'Idempotency-Key': key } });

async function claimedUntil(): Promise<number> {
  const { rows } = await database.owner.query<{ until: string }>(
    'select extract(epoch from claimed_until) as until from app.idempotency_keys where claim_id is not null',
  );
  return Number(rows[0]?.until ?? 0);
}

t.test('work that goes on keeps its key, and another process gets a conflict', async (test) => {
  waiting = [];
  const slow = discover(owner, 'slow');
  const began = await until('it is claimed', claimedUntil);
  await until('it waits for the provider', () => waiting?.length === 1);
  const second = discover(other, 'slow');
  await until('the claim is renewed', async () => (await claimedUntil()) > began, 15_000);
  test.equal(refusalOf(await second), '409 idempotency_key_in_use idempotency_key_in_use');
  for (const res of waiting ?? []) sendStores(res);
  const found = expectSuccess(await slow, 200);
  const replayed = await discover(other, 'slow');
  test.equal(replayed.headers.get('idempotency-replayed'), 'true');
  test.same(expectSuccess(replayed, 200), found);
});

t.test('the key of a process that dies is free within half a minute', async (test) => {
  waiting = [];
  const lost = discover(owner, 'lost').catch(() => undefined);
  await until('it waits for the provider', () => waiting?.length === 1);
  first.child.kill('SIGKILL');
  await lost;
  waiting = undefined;
  const began = performance.now();
  const reply = await until(
    'the key is free',
    async () => {
      const again = await discover(other, 'lost');
      return again.status === 409 ? undefined : again;
    },
    45_000,
  );
  expectSuccess(reply, 200);
  test.ok(performance.now() - began < 35_000);
});
