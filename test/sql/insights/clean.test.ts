import t from 'tap';
import { functionQuery, functionText } from '../../../engine/db/function_text.ts';
import {
  claimCompaction,
  commitCompaction,
  createPublished,
  type Month,
  publish,
} from '../../support/compaction_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const { jobs } = sql;

const rows = async (text: string, ...values: unknown[]) => (await sql.owner.query(text, values)).rows;
const keysOf = async ({ sourceId }: Month) =>
  (
    await rows('select object_key from app.insight_segments where source_id = $1 order by retired_at, id', sourceId)
  ).map(({ object_key: key }) => key);

/** A month with so many retired files, the first of them since `hours`, each later one a second less, and one that is read. */
async function world(count = 4, hours = 25) {
  const org = await createTestOrganization(sql);
  const { place, month } = await createPublished(sql, org, count);
  await commitCompaction(jobs, await claimCompaction(jobs, month, { limits: { segments: 2 } }));
  await rows(
    `update app.insight_segments g set retired_at = now() - make_interval(hours => $2) + make_interval(secs => n.n)
     from (select id, row_number() over (order by id) as n from app.insight_segments where source_id = $1) n
     where n.id = g.id and g.retired_at is not null`,
    month.sourceId,
    hours,
  );
  return { org, place, month, keys: (await keysOf(month)).slice(0, count) };
}

type Expired = { keys: string[]; after: { retiredAt: string; id: string } | null };
const expired = (
  organizationId: string,
  options: Readonly<{ hours?: number; rows?: number; after?: Expired['after'] }> = {},
) => {
  const { hours = 24, rows: limit = 200, after = null } = options;
  return transition(jobs, 'insight_segments_expired', {
    organizationId,
    hours,
    rows: limit,
    after,
  }) as Promise<Expired>;
};
const remove = (organizationId: string, keys: readonly string[], hours = 24) =>
  transition(jobs, 'insight_segments_remove', { organizationId, hours, keys: [...keys] });

t.test('files that are not read any more are named page by page, the oldest first', async (test) => {
  const { org, keys } = await world();
  const { organizationId } = org;
  const first = await expired(organizationId, { rows: 3 });
  test.same(first.keys, keys.slice(0, 3));
  const second = await expired(organizationId, { rows: 3, after: first.after });
  test.same(second, { keys: keys.slice(3), after: null });
  test.same(await expired(organizationId, { hours: 26 }), { keys: [], after: null });
  const other = await createTestOrganization(sql);
  test.same(await expired(other.organizationId), { keys: [], after: null });
  await rows('update app.organizations set deleted_at = now() where id = $1', organizationId);
  test.same(await expired(organizationId), { keys: [], after: null }, 'its files are the deletion’s');
});

t.test('none goes before a day, whatever is asked', async (test) => {
  const { org, keys } = await world(4, 23);
  test.same(await expired(org.organizationId, { hours: 1 }), { keys: [], after: null });
  test.same(await remove(org.organizationId, keys, 1), { removed: 0 });
});

t.test('rows go that nothing reads, and no others', async (test) => {
  const { org, place, month, keys } = await world();
  await publish(sql, place, 1, { staged: true });
  const other = await createTestOrganization(sql);
  test.same(await remove(other.organizationId, keys), { removed: 0 });
  const all = await keysOf(month);
  test.same(await remove(org.organizationId, keys.slice(1)), { removed: 3 });
  test.same(await remove(org.organizationId, keys.slice(1)), { removed: 0 }, 'a repeat');
  test.same(await remove(org.organizationId, all), { removed: 1 });
  test.match(
    await rows('select staged, retired_at from app.insight_segments where source_id = $1', month.sourceId),
    [{ retired_at: null }, { retired_at: null }],
    'what is read, and what is staged',
  );
});

t.test('what a round had staged and dropped goes too', async (test) => {
  const org = await createTestOrganization(sql);
  const { place, month } = await createPublished(sql, org, 1);
  await publish(sql, place, 1, { staged: true });
  const [staged] = await rows(
    'select object_key from app.insight_segments where source_id = $1 and staged',
    month.sourceId,
  );
  test.same((await expired(org.organizationId)).keys, []);
  await rows(
    `update app.insight_segments set staged = false, retired_at = now() - interval '25 hours' where source_id = $1 and staged`,
    month.sourceId,
  );
  test.same((await expired(org.organizationId)).keys, [staged.object_key]);
});

t.test('organizations of which files expired are found', async (test) => {
  const [old, recent] = [await world(), await world(4, 2)];
  const found = (
    await rows(
      `select organization_id from ${functionText('insight_expiries_due', { hours: '24', organizations: '1000' })}`,
    )
  ).map((row) => row.organization_id);
  test.ok(found.includes(old.org.organizationId));
  test.notOk(found.includes(recent.org.organizationId));
  test.equal(found.length, new Set(found).size);
});

t.test('the files that rows name are told from others', async (test) => {
  const { org, keys } = await world();
  const named = async (organizationId: string, asked: readonly string[]) => {
    const { text, values } = functionQuery('insight_objects_named', { organizationId, keys: [...asked] });
    return (await jobs.query(text, values)).rows[0]?.['result'];
  };
  test.same(
    new Set((await named(org.organizationId, [...keys, 'organizations/x/insights/none'])) as string[]),
    new Set(keys),
  );
  const other = await createTestOrganization(sql);
  test.same(await named(other.organizationId, keys), []);
  await rows('update app.organizations set deleted_at = now() where id = $1', org.organizationId);
  test.equal(await named(org.organizationId, keys), null);
});

t.test('an organization is swept once a day', async (test) => {
  const { org } = await world();
  const { organizationId } = org;
  const due = async () =>
    (await rows(`select organization_id from ${functionText('insight_sweeps_due', { organizations: '1000' })}`)).some(
      (row) => row.organization_id === organizationId,
    );
  const begin = () => transition(jobs, 'insight_sweep_begin', { organizationId });
  const queued = async () =>
    (await rows(`select key from graphile_worker.jobs where task_identifier = 'insights__clean_files'`)).map(
      ({ key }) => key,
    );
  test.notOk(await due());
  test.same(await begin(), { begun: false }, 'it is new');
  await rows('update app.insight_heads set sweep_at = now() where organization_id = $1', organizationId);
  test.ok(await due());
  test.same(await begin(), { begun: true });
  test.same(await queued(), [`insights__clean_files:${organizationId}`]);
  test.same(await begin(), { begun: false }, 'a repeat');
  test.notOk(await due());
});
