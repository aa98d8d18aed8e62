import t from 'tap';
import { expectSuccess, ownerPath } from '../../support/api_fixtures.ts';
import { createTestOrganization, runNew } from '../../support/fixtures.ts';
import { openGateway } from '../../support/gateway_world.ts';
import { allow } from '../../support/integration_fixtures.ts';
import { integrationConfig } from '../integrations/support.ts';
import { openServer } from '../providers/support.ts';

const restUrl = 'https://tidy-cat-30142.upstash.io';
const SET = 'upstash_redis.set';

const upstash = await openServer(t, ({ body }) => ({ result: body.includes('PING') ? 'PONG' : 'OK' }));
const { integrations } = integrationConfig({ origins: { [restUrl]: upstash.origin } });
const world = await openGateway(t, { config: { integrations } });
const { app, sql } = world;

t.test('settings that no longer allow what was approved cancel it, and leave what they still allow', async (t) => {
  const org = await createTestOrganization(sql);
  const at = (rest = '') => ownerPath(org, `/integrations${rest}`);
  const scope = async (prefix: string) => {
    const keyScope = { kind: 'prefixes', prefixes: [prefix] };
    return expectSuccess(
      await app.owner.put(at('/shop/settings'), { settings: { kind: 'upstash_redis', restUrl, keyScope } }),
    );
  };
  expectSuccess(await app.owner.post(at(), { key: 'shop', provider: 'upstash-redis' }), 201);
  await scope('shop:');
  expectSuccess(await app.owner.put(at('/shop/credential'), { kind: 'bearer_token', token: 'token-of-ours' }));
  expectSuccess(await app.owner.put(at('/shop/tools'), { accessMode: 'full' }));
  await allow(sql, org, 'integrations.read', 'integrations.propose');
  const by = await world.resolve(org, await runNew(sql, org));
  const approved = async (key: string) => {
    const { action } = expectSuccess(await world.execute(by, { tool: SET, arguments: { key, value: '1' } }));
    return (await world.approve(by, action?.id ?? '')).id;
  };
  const [outside, inside] = [await approved('shop:a'), await approved('shop:b:c')];
  await scope('shop:b:');
  upstash.calls.length = 0;
  await world.runAction(by, outside);
  t.match(await world.action(by, outside), { status: 'cancelled', reason: { code: 'settings_changed' } });
  t.equal(upstash.calls.length, 0);
  await world.runAction(by, inside);
  t.match(await world.action(by, inside), { status: 'succeeded', reason: null });
  t.same(
    upstash.calls.map(({ body }) => JSON.parse(body)),
    [['SET', 'shop:b:c', '1']],
  );
});
