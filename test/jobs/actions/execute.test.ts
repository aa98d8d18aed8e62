import t from 'tap';
import { KEYS } from '../../engine/integrations/support.ts';
import { makeOverdue } from '../../support/action_fixtures.ts';
import { expectSuccess } from '../../support/api_fixtures.ts';
import { type Caller, openGateway, REFUND } from '../../support/gateway_world.ts';
import { until } from '../../support/wait.ts';
import { openJobs } from '../support.ts';

const world = await openGateway(t);
const { stripe, sql } = world;
await openJobs(t, world.app.database.url, {
  ENCRYPTION_KEYS: KEYS,
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ 'https://api.stripe.com': stripe.origin }),
});

async function propose(by: Caller, charge: string): Promise<string> {
  const { action } = expectSuccess(await world.execute(by, { tool: REFUND, arguments: { charge } }));
  return action?.id ?? '';
}

const ended = (by: Caller, id: string, status: string) =>
  until(`the action is ${status}`, async () => (await world.action(by, id)).status === status);

t.test('an approval is carried out, and so is what needs none', async (t) => {
  const by = await world.caller();
  const id = await propose(by, 'ch_1');
  await world.approve(by, id);
  await ended(by, id, 'succeeded');
  const free = await world.caller({ constraints: { approvalRequiredForRisk: [] } });
  await ended(free, await propose(free, 'ch_2'), 'succeeded');
  t.equal(stripe.sent(), 2);
});

t.test('an organization with many has few at a time, and another one does not wait for them', async (t) => {
  const many = await world.caller({ constraints: { approvalRequiredForRisk: [] } });
  const few = await world.caller({ constraints: { approvalRequiredForRisk: [] } });
  const opened = Promise.withResolvers<boolean>();
  let atOnce = 0;
  stripe.faults.before = (call) => {
    if (!call.body.includes('ch_slow')) return false;
    atOnce += 1;
    return opened.promise;
  };
  const slow = await Promise.all(Array.from({ length: 8 }, (_, index) => propose(many, `ch_slow${index}`)));
  await ended(few, await propose(few, 'ch_quick'), 'succeeded');
  t.ok(atOnce >= 1 && atOnce <= 2, `${atOnce} at once`);
  stripe.faults.before = undefined;
  opened.resolve(false);
  for (const id of slow) await ended(many, id, 'succeeded');
});

t.test('what nobody decides about expires', async () => {
  const by = await world.caller();
  const id = await propose(by, 'ch_1');
  await makeOverdue(sql, id);
  await ended(by, id, 'expired');
});
