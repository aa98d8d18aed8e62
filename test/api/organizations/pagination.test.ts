import t from 'tap';
import { z } from 'zod';
import type { Organization } from '../../../api/organizations/schema.ts';
import { functionText } from '../../../engine/db/function_text.ts';
import { startTestApp } from '../../support/app.ts';
import { startIssuer } from '../../support/jwt.ts';

const issuer = await startIssuer(t);
const app = await startTestApp(t);
const { owner, database } = app;

const made = (fields: string, subject = 'null') =>
  functionText('organization_create', { organizationId: 'app.uuid_v7()', fields, subject });

// Made by one transaction, so that all have one createdAt and ids alone order them; every third is onboarding, and
// every second has anna among its members.
await database.owner.query(`
  select ${made(
    `jsonb_build_object('slug', 'bulk-' || n, 'name', 'Bulk',
      'status', case when n % 3 = 0 then 'onboarding' else 'active' end)`,
    `case when n % 2 = 0 then 'anna' end`,
  )}
  from generate_series(1, 120) n`);
// Microseconds apart, which a cursor cut to milliseconds would lose.
await database.owner.query(`
  with later as (
    select ${made(`jsonb_build_object('slug', 'later-' || n, 'name', 'Later')`)} -> 'organization' ->> 'id' as id, n
    from generate_series(1, 10) n)
  update app.organizations o set created_at = date_trunc('second', o.created_at) + n * interval '1 microsecond'
  from later where o.id = later.id::uuid`);

const expected = z.array(z.object({ id: z.string(), status: z.string(), anna: z.boolean() })).parse(
  (
    await database.owner.query(`
        select o.id, o.status, exists (select 1 from app.organization_members m where m.organization_id = o.id) as anna
        from app.organizations o order by created_at desc, id desc`)
  ).rows,
);

type Query = Readonly<Record<string, string | number | undefined>>;
const page = (query: Query, client = owner) => client.get<Organization[]>('/organizations', { query });
const ids = (reply: Awaited<ReturnType<typeof page>>) => reply.data.map((one) => one.id);

/** Walks to the end and back again; the pages of both ways. */
async function walk(query: Query, client = owner): Promise<{ forward: string[][]; back: string[][] }> {
  const forward: string[][] = [];
  const back: string[][] = [];
  let reply = await page(query, client);
  forward.push(ids(reply));
  while (reply.body.pagination.nextCursor) {
    reply = await page({ ...query, cursor: reply.body.pagination.nextCursor }, client);
    forward.push(ids(reply));
  }
  back.unshift(ids(reply));
  while (reply.body.pagination.previousCursor) {
    reply = await page({ ...query, cursor: reply.body.pagination.previousCursor }, client);
    back.unshift(ids(reply));
  }
  return { forward, back };
}

t.test('without a limit a page has 50', async (t) => {
  const first = await page({});
  t.equal(first.data.length, 50);
  t.match(first.body.pagination, {
    cursor: null,
    limit: 50,
    hasNextPage: true,
    hasPreviousPage: false,
    previousCursor: null,
    nextCursor: String,
  });
});

t.test('each organization appears once, newest first, and the way back shows the same pages', async (t) => {
  const { forward, back } = await walk({});
  t.strictSame(
    forward.map((one) => one.length),
    [50, 50, 30],
  );
  t.strictSame(
    forward.flat(),
    expected.map((one) => one.id),
  );
  t.strictSame(back, forward);
});

t.test('the same under a filter', async (t) => {
  const { forward, back } = await walk({ status: 'onboarding', limit: 7 });
  t.strictSame(
    forward.flat(),
    expected.filter((one) => one.status === 'onboarding').map((one) => one.id),
  );
  t.strictSame(back, forward);
});

t.test('the same for a member, who sees nothing else', async (t) => {
  const other = await startTestApp(t, { database, config: { ownerAuth: issuer.ownerAuth } });
  const anna = other.owner.as(await issuer.token('anna'));
  const { forward, back } = await walk({ limit: 25 }, anna);
  t.strictSame(
    forward.flat(),
    expected.filter((one) => one.anna).map((one) => one.id),
  );
  t.strictSame(back, forward);
  const filtered = await walk({ limit: 9, status: 'active' }, anna);
  t.strictSame(
    filtered.forward.flat(),
    expected.filter((one) => one.anna && one.status === 'active').map((one) => one.id),
  );
});

t.test('organizations made and deleted meanwhile neither repeat nor hide others', async (t) => {
  const { nextCursor } = (await page({ limit: 100 })).body.pagination;
  await database.owner.query(`select ${made(`'{"slug": "newer", "name": "Newer"}'`)}`);
  const rest = await page({ limit: 100, cursor: nextCursor ?? '' });
  t.strictSame(
    ids(rest),
    expected.slice(100).map((one) => one.id),
  );
  const last = rest.data.at(-1);
  t.match(await owner.delete(`/organizations/${last?.id}`), { status: 200 });
  t.strictSame(ids(await page({ limit: 100, cursor: nextCursor ?? '' })), ids(rest).slice(0, -1));
});

t.test('a page that became empty leads back to where it came from, that organization included', async (t) => {
  const { data } = await page({ status: 'onboarding', limit: 200 });
  const [last, beforeLast] = [data.at(-1), data.at(-2)];
  const first = await page({ status: 'onboarding', limit: data.length - 1 });
  t.equal(first.data.at(-1)?.id, beforeLast?.id);
  await owner.patch(`/organizations/${last?.id}`, { status: 'active' });
  const empty = await page({
    status: 'onboarding',
    limit: data.length - 1,
    cursor: first.body.pagination.nextCursor ?? '',
  });
  t.strictSame(empty.data, []);
  t.match(empty.body.pagination, { hasNextPage: false, hasPreviousPage: true });
  const back = await page({
    status: 'onboarding',
    limit: data.length - 1,
    cursor: empty.body.pagination.previousCursor ?? '',
  });
  t.strictSame(ids(back), ids(first));
});

t.test('a cursor fits its own list and filters alone', async (t) => {
  const refused = { status: 400, code: 'validation_failed' };
  const { nextCursor } = (await page({ limit: 10 })).body.pagination;
  const cursor = nextCursor ?? '';
  t.match(await page({ limit: 20, cursor }), { status: 200 }, 'another limit is fine');
  t.match(await page({ status: 'active', cursor }), refused);
  t.match(await page({ cursor: `${cursor.slice(0, -1)}x` }), refused);
  t.match(await page({ cursor: 'nonsense' }), refused);
  t.match(await page({ cursor: 'x'.repeat(2001) }), refused);
  t.match(await page({ cursor: '' }), refused);
});

t.test('wrong queries are 400', async (t) => {
  const refused = { status: 400, code: 'validation_failed' };
  for (const query of [{ limit: 0 }, { limit: 201 }, { limit: 'ten' }, { status: 'gone' }, { offset: 10 }]) {
    t.match(await page(query), refused, JSON.stringify(query));
  }
  t.match(await owner.get('/organizations?limit=1&limit=2'), refused);
  t.match(await page({ limit: 200 }), { status: 200 });
});
