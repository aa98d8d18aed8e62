import t from 'tap';
import { encryptionKeys } from '../../../../engine/secrets/index.ts';
import { KEYS } from '../../../engine/integrations/support.ts';
import { invoice, openShop, order, type Row, STORE } from '../../../engine/providers/lemon_squeezy_shop.ts';
import { openJobs } from '../../../jobs/support.ts';
import {
  type CollectedSource,
  collectedSources,
  connectProvider,
  factsOf,
  segmentsOf,
  settled,
} from '../../../support/collected_facts.ts';
import { createTestOrganization } from '../../../support/fixtures.ts';
import { passTime } from '../../../support/insight_fixtures.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);
const { shop, server } = await openShop(t);
const jobs = await openJobs(t, sql.url, {
  ENCRYPTION_KEYS: KEYS,
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ 'https://api.lemonsqueezy.com': server.origin }),
  INSIGHT_UNITS: '4',
  // So that a scan takes several units.
  INSIGHT_UNIT_PAGES: '2',
});
const keys = encryptionKeys.parse(KEYS);
const DAY = 86_400_000;
const ago = (days: number) => Date.now() - days * DAY;

t.afterEach(() => {
  shop.send = (page) => page;
});

/** Old enough that no tail reads them again. */
const stock = (): Row[] => Array.from({ length: 7 }, (_, n) => order(n + 1, ago(20 + n * 9)));

async function openCollected() {
  shop.largestPage = 2;
  shop.orders = stock();
  shop.invoices = [invoice(1, ago(30))];
  const org = await createTestOrganization(sql);
  const place = await connectProvider(sql, org, {
    provider: 'lemon-squeezy',
    keys,
    credential: { kind: 'api_key', apiKey: 'x'.repeat(40) },
    subject: 'user',
    settings: { kind: 'lemon_squeezy', storeIds: [STORE] },
  });
  await settled(sql, place);
  const source = (await collectedSources(sql, place)).find(({ dataset }) => dataset === 'ls.sales');
  if (!source) throw new Error('there is no source');
  const known = async () => [...(await factsOf(sql, jobs.storage, place, source as CollectedSource)).keys()].sort();
  const scan = async () => {
    await sql.owner.query(`update app.insight_cursors set due_at = now() where source_id = $1 and mode = 'rescan'`, [
      source.id,
    ]);
    const { rows } = await sql.owner.query('select now() as at');
    await passTime(sql, place);
    await until('the scan is done', async () => {
      const found = await sql.owner.query(
        `select completed_at > $2 as done from app.insight_cursors where source_id = $1 and mode = 'rescan'`,
        [source.id, rows[0].at],
      );
      return found.rows[0]?.done === true;
    });
    await settled(sql, place);
  };
  return { place, source, known, scan };
}

const staged = async ({ id }: CollectedSource) => {
  const { rows } = await sql.owner.query(
    'select count(*)::int as n from app.insight_segments where source_id = $1 and staged',
    [id],
  );
  return rows[0].n;
};

t.test('what two whole scans do not show is withdrawn, and counts again where it comes back', async (test) => {
  const { source, known, scan } = await openCollected();
  const all = await known();
  test.equal(all.length, 8);
  await scan();
  test.same(await known(), all);
  shop.orders = shop.orders.filter(({ id }) => id !== '3');
  await scan();
  test.same(await known(), all, 'one scan alone says nothing');
  await scan();
  const left = all.filter((key) => !key.endsWith(':3'));
  test.equal(left.length, 7);
  test.same(await known(), left);
  test.equal(await staged(source), 0);
  shop.orders = stock();
  await scan();
  test.same(await known(), all);
});

t.test('nothing is withdrawn that moved between pages, or while there were more and fewer', async (test) => {
  const { known, scan } = await openCollected();
  const all = await known();
  // Each scan misses another one.
  for (const missed of ['2', '5']) {
    shop.send = (page, { url }) => {
      const { data } = page as { data: Row[] };
      return url.pathname === '/v1/orders' ? { ...page, data: data.filter(({ id }) => id !== missed) } : page;
    };
    await scan();
    test.same(await known(), all, missed);
  }
  shop.send = (page) => page;
  await scan();
  // The same one twice, while the count changes.
  let asked = 0;
  shop.send = (page, { url }) => {
    const { data, meta } = page as { data: Row[]; meta: { page: { total: number } } };
    if (url.pathname !== '/v1/orders') return page;
    asked += 1;
    const total = meta.page.total + asked;
    return { ...page, data: data.filter(({ id }) => id !== '4'), meta: { ...meta, page: { ...meta.page, total } } };
  };
  await scan();
  await scan();
  test.same(await known(), all);
});

t.test('a refund stays, though a sale reports the last one alone', async (test) => {
  const { known, place, scan, source } = await openCollected();
  const made = ago(29);
  const set = (refunded_amount: number) => {
    const rest = { refunded_amount, status: 'partial_refund', updated_at: new Date().toISOString() };
    shop.orders = shop.orders.map((row) => (row.id === '2' ? order(2, made, rest) : row));
  };
  set(100);
  await scan();
  set(300);
  await scan();
  await scan();
  const files = async () => (await segmentsOf(sql, place, source.id)).segments.length;
  const before = await files();
  // The sale changes otherwise, so that its refund seems to be of now.
  set(300);
  await scan();
  test.equal((await known()).filter((key) => key.startsWith('refund:')).length, 2);
  test.equal(await files(), before, 'what is reported anew is not written again');
});
