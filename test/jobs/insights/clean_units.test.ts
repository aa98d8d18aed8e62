import t from 'tap';
import { createTestOrganization } from '../../support/fixtures.ts';
import { claimed, commit, createCollected, segment } from '../../support/insight_fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';
import { openJobs, runJob } from '../support.ts';

const sql = await openSql(t);
await openJobs(t, sql.url);

const count = async (table: string) =>
  (await sql.owner.query(`select count(*)::integer as n from app.${table}`)).rows[0]?.n;
const clean = (rows: number) => transition(sql.jobs, 'insight_units_clean', { rows });

t.test('units go 30 days after their end, all of them, and no other', async (test) => {
  const place = await createCollected(sql, await createTestOrganization(sql));
  await commit(sql.jobs, await claimed(sql.jobs, place), { segments: [segment()] });
  const other = await createCollected(sql, await createTestOrganization(sql));
  // One that is under way since long.
  await claimed(sql.jobs, other);
  await sql.owner.query("update app.insight_units set started_at = now() - interval '40 days'");
  await sql.owner.query(
    `update app.insight_units set ended_at = now() - case mode when 'tail' then interval '31 days' else interval '29 days' end
     where ended_at is not null`,
  );
  test.equal(await count('insight_units'), 4);
  test.same(await clean(10), { removed: 1 });
  test.same(await clean(10), { removed: 0 }, 'a repeat');
  test.equal(await count('insight_units'), 3);
  test.same([await count('insight_segments'), await count('insight_publications')], [1, 1], 'what it published stays');

  // More than two batches, of two organizations.
  await sql.owner.query(
    `insert into app.insight_units (organization_id, id, integration_id, mode, state, fence, generation_digest, started_at, ended_at)
     select u.organization_id, gen_random_uuid(), u.integration_id, 'discovery', 'failed', 1, u.generation_digest,
       now() - interval '31 days', now() - interval '31 days'
     from generate_series(1, 600) n, (select * from app.insight_units where mode = 'discovery') u`,
  );
  test.same(await clean(3), { removed: 3 });
  const [first, second] = await Promise.all([clean(100), clean(100)]);
  const removed = Number(first['removed']) + Number(second['removed']);
  test.ok(removed >= 100 && removed <= 200, 'two at once remove each of them once');
  test.equal(await count('insight_units'), 1_200 - removed);
  await runJob(sql.owner, 'insights__clean_units');
  test.equal(await count('insight_units'), 3);
});
