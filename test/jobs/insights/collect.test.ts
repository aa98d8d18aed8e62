import t from 'tap';
import { encryptionKeys } from '../../../engine/secrets/index.ts';
import { KEYS } from '../../engine/integrations/support.ts';
import {
  type Account,
  item,
  openAccount,
  PLANTED,
  subscription,
  transaction,
} from '../../engine/providers/stripe_account.ts';
import { json } from '../../engine/providers/support.ts';
import { collectedSources, connectProvider, factsOf, segmentsOf, settled } from '../../support/collected_facts.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { type Place, passTime } from '../../support/insight_fixtures.ts';
import { readIntegration } from '../../support/integration_fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { openJobs } from '../support.ts';

const sql = await openSql(t);
const { account: stripe, server } = await openAccount(t);
const jobs = await openJobs(t, sql.url, {
  ENCRYPTION_KEYS: KEYS,
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ 'https://api.stripe.com': server.origin }),
  INSIGHT_UNITS: '4',
});
const keys = encryptionKeys.parse(KEYS);
const DAY_S = 86_400;
const nowS = () => Math.floor(Date.now() / 1_000);

t.afterEach(() => {
  stripe.send = (page) => page;
});

let subjects = 0;
const connectShop = (org: TestOrganization) => {
  subjects += 1;
  const credential = { kind: 'api_key', apiKey: `rk_live_abc${subjects}` };
  return connectProvider(sql, org, { provider: 'stripe', keys, credential, subject: `acct_${subjects}` });
};

const stock = (): Pick<Account, 'transactions' | 'subscriptions'> => ({
  transactions: Array.from({ length: 250 }, (_, n) => transaction(`txn_${n}`, nowS() - 3_600 - n * DAY_S)),
  subscriptions: [subscription('sub_1', nowS() - DAY_S, [item('si_1')])],
});

const unitsOf = async ({ integrationId }: Place) => {
  const { rows } = await sql.owner.query(
    'select mode, state, revision::int, pages, records, error from app.insight_units where integration_id = $1 order by started_at, id',
    [integrationId],
  );
  return rows;
};

t.test('a connection that is made is collected: what is new, a picture, and the past', async (test) => {
  Object.assign(stripe, stock());
  const org = await createTestOrganization(sql);
  const place = await connectShop(org);
  await settled(sql, place);
  const [balance, picture] = await collectedSources(sql, place);
  if (!balance || !picture) throw new Error('there are no sources');
  test.match(balance, { dataset: 'stripe.balance_tx', environment: 'live', timezone: 'America/Chicago' });
  const facts = await factsOf(sql, jobs.storage, place, balance);
  test.same([...facts.keys()].sort(), stripe.transactions.map(({ id }) => id).sort());
  test.match(facts.get('txn_0')?.values, {
    amount: '11.99',
    fee: '0.65',
    currency: 'EUR',
    reporting_category: 'charge',
  });
  test.equal((await factsOf(sql, jobs.storage, place, picture)).size, 1);
  test.match(balance.coverage, [{ state: 'complete' }]);
  const units = await unitsOf(place);
  test.same([...new Set(units.map(({ state }) => state))], ['committed']);
  test.equal(units[0].mode, 'discovery');
  const revisions = units.flatMap(({ revision }) => revision ?? []);
  test.same(
    revisions,
    revisions.map((_, index) => index + 1),
  );

  // What is known is not written again; what is new is.
  const before = (await segmentsOf(sql, place, balance.id)).segments.length;
  await passTime(sql, place);
  await settled(sql, place);
  test.equal((await segmentsOf(sql, place, balance.id)).segments.length, before);
  stripe.transactions.push(transaction('txn_new', nowS()));
  await passTime(sql, place);
  await settled(sql, place);
  test.equal((await segmentsOf(sql, place, balance.id)).segments.length, before + 1);
  test.ok((await factsOf(sql, jobs.storage, place, balance)).has('txn_new'));
});

t.test('no text of a payload is in any file', async (test) => {
  const { objects } = await jobs.storage.list('organizations/', { limit: 1_000 });
  const files = objects.filter(({ key }) => key.includes('/insights/'));
  test.ok(files.length > 12);
  for (const { key } of files) {
    const chunks = await (await jobs.storage.get(key)).toArray();
    test.notOk(Buffer.concat(chunks).includes(PLANTED), key);
  }
});

t.test('a provider that is away is asked again later, and its word about when is kept', async (test) => {
  Object.assign(stripe, stock());
  stripe.send = (_page, _call, res) => void json(res, 429, { error: { type: 'rate_limit' } }, { 'retry-after': '600' });
  const org = await createTestOrganization(sql);
  const place = await connectShop(org);
  await settled(sql, place);
  const [, tail] = await unitsOf(place);
  test.match(tail, { mode: 'tail', state: 'failed', error: { code: 'provider_rate_limited' } });
  const { rows } = await sql.owner.query(
    'select extract(epoch from due_at - now())::int as seconds from app.insight_connectors where integration_id = $1',
    [place.integrationId],
  );
  test.ok(rows[0].seconds > 550 && rows[0].seconds <= 600, String(rows[0].seconds));
  const calls = server.calls.length;
  stripe.send = (page) => page;
  await sql.owner.query('delete from app.rate_limit_buckets');
  await passTime(sql, place);
  await settled(sql, place);
  test.ok(server.calls.length > calls);
  const [balance] = await collectedSources(sql, place);
  test.equal((await factsOf(sql, jobs.storage, place, balance as never)).size, 250);
});

t.test('pages before a failure are kept, and the rest follows', async (test) => {
  Object.assign(stripe, stock());
  let pages = 0;
  stripe.send = (page, { url }, res) => {
    if (url.pathname !== '/v1/balance_transactions') return page;
    pages += 1;
    return pages === 4 ? void json(res, 403, { error: { type: 'invalid_request_error' } }) : page;
  };
  const org = await createTestOrganization(sql);
  const place = await connectShop(org);
  await settled(sql, place);
  await passTime(sql, place);
  await settled(sql, place);
  const [balance] = await collectedSources(sql, place);
  test.equal((await factsOf(sql, jobs.storage, place, balance as never)).size, 250);
  test.ok(
    (await unitsOf(place)).some(({ state, error }) => state === 'committed' && error?.code === 'provider_forbidden'),
  );
});

t.test('a round that begins anew goes back as far as it is known, and no less', async (test) => {
  Object.assign(stripe, stock());
  const org = await createTestOrganization(sql);
  const place = await connectShop(org);
  await settled(sql, place);
  const [balance] = await collectedSources(sql, place);
  if (!balance) throw new Error('there is no source');
  // The process was away for three days.
  await sql.owner.query(
    `update app.insight_cursors set cursor = jsonb_build_object('known', $2::bigint) where source_id = $1 and mode = 'tail'`,
    [balance.id, Date.now() - 3 * DAY_S * 1_000],
  );
  const late = Array.from({ length: 130 }, (_, n) => transaction(`txn_late_${n}`, nowS() - 2 * DAY_S - n));
  stripe.transactions.push(...late);
  let faults = 1;
  stripe.send = (page, { url }, res) => {
    if (!url.searchParams.has('starting_after') || faults === 0) return page;
    faults -= 1;
    return void json(res, 400, { error: { type: 'invalid_request_error', code: 'resource_missing' } });
  };
  await passTime(sql, place);
  await settled(sql, place);
  test.match((await collectedSources(sql, place))[0], { last_error: { code: 'cursor_moved' } });
  await passTime(sql, place);
  await settled(sql, place);
  const facts = await factsOf(sql, jobs.storage, place, balance);
  test.same(
    late.filter(({ id }) => !facts.has(id)).map(({ id }) => id),
    [],
  );
});

t.test('a month of which more is known than fits into memory takes what comes', async (test) => {
  Object.assign(stripe, stock());
  const org = await createTestOrganization(sql);
  const place = await connectShop(org);
  await settled(sql, place);
  const [balance] = await collectedSources(sql, place);
  if (!balance) throw new Error('there is no source');
  await sql.owner.query('update app.insight_segments set row_count = 300000 where source_id = $1', [balance.id]);
  stripe.transactions.push(transaction('txn_new', nowS()));
  await passTime(sql, place);
  await settled(sql, place);
  const { rows } = await sql.owner.query(
    `select sum(row_count)::int as rows from app.insight_segments where source_id = $1 and row_count < 300000`,
    [balance.id],
  );
  test.ok(rows[0].rows >= 1);
  test.equal((await collectedSources(sql, place))[0]?.['last_error' as never], null);
});

t.test('a credential that is refused says so of its connection, and nothing is asked any more', async (test) => {
  Object.assign(stripe, stock());
  const org = await createTestOrganization(sql);
  stripe.send = (_page, _call, res) => void json(res, 401, { error: { type: 'invalid_request_error' } });
  const place = await connectShop(org);
  await until('it is not due any more', async () => {
    const { rows } = await sql.owner.query('select due_at from app.insight_connectors where integration_id = $1', [
      place.integrationId,
    ]);
    return rows[0]?.due_at === null;
  });
  test.match(await readIntegration(sql, org, place.integrationId), { readiness: 'needs_reauthorization' });
});
