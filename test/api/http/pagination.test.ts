import { createHash } from 'node:crypto';
import { sql } from 'slonik';
import t from 'tap';
import { z } from 'zod';
import { uuid } from '../../../api/fields/ids.ts';
import { type Endpoint, endpoint } from '../../../api/http/endpoint.ts';
import { keyColumns, keyset, pageQuery, type Sort } from '../../../api/http/pagination.ts';
import { scoped } from '../../../engine/db/scope.ts';
import { startTestApp } from '../../support/app.ts';
import { createOrganization } from './started_run.ts';

const sorts: Record<string, Sort> = {
  createdAt: { name: 'createdAt', key: sql.fragment`i.created_at`, type: 'timestamptz', direction: 'desc' },
  oldest: { name: 'createdAt', key: sql.fragment`i.created_at`, type: 'timestamptz', direction: 'asc' },
  size: { name: 'size', key: sql.fragment`i.size`, type: 'integer', direction: 'desc' },
  title: { name: 'title', key: sql.fragment`i.title`, type: 'text', direction: 'asc' },
};

const items: Endpoint = endpoint({
  method: 'get',
  path: '/organizations/{organizationId}/items',
  audience: 'owner',
  tag: 'System',
  operationId: 'listItems',
  summary: 'A list',
  params: { organizationId: uuid },
  query: {
    ...pageQuery(),
    sortBy: z.enum(['createdAt', 'oldest', 'size', 'title']).default('createdAt'),
    kind: z.string().optional(),
  },
  response: { list: true, data: z.array(z.object({ id: uuid, title: z.string() })) },
  async handler({ params, query, db }) {
    const sort = sorts[query.sortBy] as Sort;
    const page = keyset({
      list: `items ${params.organizationId}`,
      sort,
      id: sql.fragment`i.id`,
      filters: { kind: query.kind },
      cursor: query.cursor,
      limit: query.limit,
    });
    const kind = query.kind === undefined ? sql.fragment`true` : sql.fragment`i.kind = ${query.kind}`;
    const select = sql.fragment`
      select i.id, i.title, ${page.columns} from app.items i
      where i.organization_id = scope.organization_id and ${kind} and ${page.where} ${page.orderAndLimit}`;
    const rows = await db.any(
      scoped(params.organizationId, z.object({ id: uuid, title: z.string(), ...keyColumns }), select),
    );
    return page.finish(rows, ({ id, title }) => ({ id, title }));
  },
});

const app = await startTestApp(t, { endpoints: [items] });
const organizationId = await createOrganization(app.services.db);
const other = await createOrganization(app.services.db);
const path = `/organizations/${organizationId}/items`;
const { owner: database } = app.database;

// Equal keys, keys that differ by a microsecond, and keys before 1970: whatever a cut to milliseconds would mix up.
await database.query(`
  create table app.items (
    organization_id uuid not null, id uuid primary key default gen_random_uuid(), title text not null, size integer not null,
    kind text not null, created_at timestamptz not null);
  alter table app.items enable row level security;
  create policy tenant_read on app.items for select to runner_api using (organization_id = (select app.current_organization()));
  grant select on app.items to runner_api`);
await database.query(
  `insert into app.items (organization_id, title, size, kind, created_at)
   select $1, 'Ärger ' || (n % 7), n % 5, case when n % 3 = 0 then 'a' else 'b' end,
     case when n < 60 then timestamptz '2026-01-01 00:00:00.123456Z'
          when n < 90 then timestamptz '2026-01-01 00:00:00.123456Z' + n * interval '1 microsecond'
          when n < 100 then timestamptz '1965-05-05 05:05:05.000001Z' - n * interval '1 microsecond'
          else timestamptz '9999-12-31 23:59:59.999999Z' - n * interval '1 microsecond' end
   from generate_series(1, 120) n`,
  [organizationId],
);
await database.query(
  `insert into app.items (organization_id, title, size, kind, created_at) values ($1, 'foreign', 1, 'a', now())`,
  [other],
);

type Item = { id: string; title: string };
type Query = Record<string, string | number | undefined>;
const get = (query: Query) => app.owner.get<Item[]>(path, { query });

async function walk(query: Query, way: 'nextCursor' | 'previousCursor', from?: string) {
  const pages: Item[][] = [];
  let cursor = from;
  for (;;) {
    const { data, body } = await get({ ...query, cursor });
    pages.push(data);
    const next = body.pagination[way];
    if (next === null) return { pages, last: body.pagination };
    cursor = next;
    if (pages.length > 200) throw new Error('the pages do not end');
  }
}

const orders: Record<string, string> = {
  createdAt: 'created_at desc, id desc',
  oldest: 'created_at, id',
  size: 'size desc, id desc',
  title: 'title, id',
};

for (const [sortBy, order] of Object.entries(orders)) {
  t.test(`each row comes once, forward and back, in pages of any size: ${sortBy}`, async (t) => {
    const { rows } = await database.query(`select id from app.items where organization_id = $1 order by ${order}`, [
      organizationId,
    ]);
    const expected = rows.map((row) => row.id);
    t.equal(expected.length, 120);
    for (const limit of [1, 7, 50, 200]) {
      const forward = await walk({ sortBy, limit }, 'nextCursor');
      t.same(
        forward.pages.flat().map((item) => item.id),
        expected,
        `forward by ${limit}`,
      );
      const from = forward.last.previousCursor;
      if (from === null) continue;
      const back = await walk({ sortBy, limit }, 'previousCursor', from);
      t.same(back.pages, forward.pages.slice(0, -1).reverse(), `back by ${limit}: the same pages`);
      t.equal(back.last.hasPreviousPage, false);
    }
  });
}

t.test('the pagination object says where one is', async (t) => {
  const first = await get({ limit: 50 });
  t.match(first.body.pagination, {
    cursor: null,
    limit: 50,
    previousCursor: null,
    hasNextPage: true,
    hasPreviousPage: false,
  });
  const cursor = first.body.pagination.nextCursor ?? '';
  t.ok(cursor.length <= 2000);
  t.match(cursor, /^[A-Za-z0-9_-]+$/);
  const second = await get({ limit: 50, cursor });
  t.match(second.body.pagination, { cursor, limit: 50, hasNextPage: true, hasPreviousPage: true });
  const third = await get({ limit: 50, cursor: second.body.pagination.nextCursor ?? '' });
  t.match(third.body.pagination, { nextCursor: null, hasNextPage: false, hasPreviousPage: true });
  t.equal(third.data.length, 20);
  t.equal((await get({})).body.pagination.limit, 50, 'the default');
});

t.test('filters hold over all pages, and tenants stay apart', async (t) => {
  const { pages } = await walk({ kind: 'a', limit: 9 }, 'nextCursor');
  t.equal(pages.flat().length, 40);
  t.notOk(pages.flat().some((item) => item.title === 'foreign'));
});

t.test('a cursor of another sort, filter or tenant, or an edited one, is 400', async (t) => {
  const { body } = await get({ limit: 10, kind: 'a' });
  const cursor = body.pagination.nextCursor ?? '';
  t.equal((await get({ limit: 20, kind: 'a', cursor })).status, 200, 'another limit is fine');
  const foreign = [
    { cursor },
    { cursor, kind: 'b' },
    { cursor, kind: 'a', sortBy: 'oldest' },
    { cursor, kind: 'a', sortBy: 'size' },
    { cursor: `${cursor.slice(0, -2)}AA`, kind: 'a' },
    { cursor: 'nonsense', kind: 'a' },
    { cursor: '', kind: 'a' },
    { cursor: 'x'.repeat(2001), kind: 'a' },
    { cursor: Buffer.from('["n",0,"1","x","y"]').toString('base64url'), kind: 'a' },
    { cursor: Buffer.from('null').toString('base64url'), kind: 'a' },
  ];
  for (const query of foreign) {
    const reply = await get(query);
    t.match(reply, { status: 400, code: 'validation_failed' }, JSON.stringify(query).slice(0, 60));
    t.match(reply.body.error.issues, [{ path: 'cursor' }]);
  }
  const elsewhere = await app.owner.get(`/organizations/${other}/items`, { query: { cursor, kind: 'a' } });
  t.match(elsewhere, { status: 400 });
});

t.test('a cursor that somebody made to fit, far outside of all time, is no failure of ours', async (t) => {
  const context = JSON.stringify([`items ${organizationId}`, 'createdAt', 'desc', []]);
  const forged = (key: string) => {
    const parts = ['n', 0, key, organizationId];
    const digest = createHash('sha256')
      .update(JSON.stringify([context, ...parts]))
      .digest('base64url');
    return Buffer.from(JSON.stringify([...parts, digest.slice(0, 16)])).toString('base64url');
  };
  t.match(await get({ cursor: forged('0') }), { status: 200 }, 'it is made as the real ones are');
  for (const key of ['-99999999999999999', '999999999999999999']) {
    t.match(await get({ cursor: forged(key) }), { status: 200 }, key);
  }
  for (const key of ['-999999999999999999', '-100000000000000000', '1000000000000000000', '1e9', '']) {
    const reply = await get({ cursor: forged(key) });
    t.match(reply, { status: 400, code: 'validation_failed' }, key);
    t.match(reply.body.error.issues, [{ path: 'cursor', code: 'invalid_cursor' }]);
  }
});

t.test('limits outside 1 to 200 are 400', async (t) => {
  for (const limit of ['0', '201', '-1', '1.5', 'x', '', '1e2', '99999999999999999999']) {
    t.match(await get({ limit }), { status: 400, body: { error: { issues: [{ path: 'limit' }] } } }, limit);
  }
});

t.test('rows that come and go meanwhile neither repeat nor hide others', async (t) => {
  const seen = new Set<string>();
  const first = await get({ sortBy: 'createdAt', limit: 10 });
  for (const item of first.data) seen.add(item.id);
  await database.query(
    `insert into app.items (organization_id, title, size, kind, created_at) values ($1, 'late', 1, 'c', '10000-01-02Z')`,
    [organizationId],
  );
  await database.query(`delete from app.items where id = $1`, [first.data.at(-1)?.id]);
  const rest = await walk({ sortBy: 'createdAt', limit: 10 }, 'nextCursor', first.body.pagination.nextCursor ?? '');
  for (const item of rest.pages.flat()) {
    t.notOk(seen.has(item.id));
    seen.add(item.id);
  }
  t.equal(seen.size, 120);
  const newer = await get({ sortBy: 'createdAt', limit: 10, cursor: rest.last.previousCursor ?? '' });
  t.equal(newer.body.pagination.hasPreviousPage, true);
});

t.test('a page whose rows are gone still leads back', async (t) => {
  const tail = await walk({ kind: 'b', limit: 70 }, 'nextCursor');
  const page = await get({ kind: 'b', limit: 70 });
  const cursor = page.body.pagination.nextCursor ?? '';
  await database.query('delete from app.items where id = any ($1)', [tail.pages[1]?.map((item) => item.id)]);
  const empty = await get({ kind: 'b', limit: 70, cursor });
  t.match(empty, { data: [], body: { pagination: { hasNextPage: false, hasPreviousPage: true } } });
  const back = await get({ kind: 'b', limit: 70, cursor: empty.body.pagination.previousCursor ?? '' });
  t.same(back.data, page.data);
});
