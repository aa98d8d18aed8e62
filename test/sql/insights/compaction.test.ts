import t from 'tap';
import {
  type CompactionRow,
  claimCompaction,
  commitCompaction,
  createPublished,
  endCompaction,
  endCompactionLease,
  type Month,
  publish,
  tryCompaction,
} from '../../support/compaction_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import {
  adapters,
  claimed,
  commit,
  createCollected,
  DATASET,
  passTime,
  segment,
} from '../../support/insight_fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const { jobs } = sql;
const late = { status: 409, code: 'state_conflict', reason: 'lease_taken' };

const rows = async (text: string, ...values: unknown[]) => (await sql.owner.query(text, values)).rows;
const rowOf = async ({ sourceId }: Month) =>
  (await rows('select *, due_at > now() as waits from app.insight_compactions where source_id = $1', sourceId))[0];
const segmentsOf = ({ sourceId }: Month) =>
  rows(
    `select id, object_key, distinct_keys, unit_id, staged, published_revision::int as published, retired_revision::int as retired,
       retired_at is not null as is_retired
     from app.insight_segments where source_id = $1 order by published_revision, id`,
    sourceId,
  );
const read = async ({ organizationId, sourceId }: Month, revision: number | null = null) => {
  const given = { organizationId, sourceId, from: null, to: null, revision };
  const { segments } = (await transition(jobs, 'insight_segments_read', given)) as { segments: { id: string }[] };
  return segments.map(({ id }) => id);
};
async function world(count = 4) {
  const org = await createTestOrganization(sql);
  return { org, ...(await createPublished(sql, org, count)) };
}

t.test('files of a month become one, in one revision, and older revisions read what they did', async (test) => {
  const { month } = await world();
  const before = await read(month);
  const row = await claimCompaction(jobs, month);
  test.match(row, { fence: 1, isWhole: true, provider: 'stripe', dataset: DATASET, schemaVersion: 1 });
  test.same(
    row.segments.map(({ id }) => id),
    before,
  );
  const stored = segment();
  const answer = { committed: true, revision: 2 };
  test.match(await commitCompaction(jobs, row, { removed: 2, segment: stored }), answer);
  test.match(await commitCompaction(jobs, row, { removed: 2, segment: stored }), answer, 'a repeat');
  test.match(await endCompaction(jobs, row), { ended: false }, 'nor is it ended any more');
  test.same(await read(month, 1), before);
  const [merged] = (await segmentsOf(month)).filter(({ published }) => published === 2);
  test.match(merged, { object_key: stored.objectKey, distinct_keys: true, unit_id: row.id, is_retired: false });
  test.same(await read(month), [merged.id]);
  test.match(
    await rows('select * from app.insight_publications where source_id = $1 and revision = 2', month.sourceId),
    [{ unit_id: null, added: 1, retired: 4 }],
  );
  test.match(await rowOf(month), { revision: '2', lease_expires_at: null, segments: [], failure_count: 0 });
  test.equal(await tryCompaction(jobs, month), 'nothing');
});

t.test('of a month that is gone nothing is left', async (test) => {
  const { month } = await world();
  const row = await claimCompaction(jobs, month);
  test.match(await commitCompaction(jobs, row, { removed: 1, segment: null }), { committed: true, revision: 2 });
  test.same(await read(month), []);
});

t.test('a part is the smallest files that keep the limits, and may leave out nothing', async (test) => {
  const { place, month } = await world();
  const large = Array.from({ length: 4 }, () => segment('2026-01', { rowCount: 50, sizeBytes: 400 }));
  await publish(sql, place, 0, { segments: large });
  const sizes = async (limits: Parameters<typeof claimCompaction>[2]) => {
    const row = await claimCompaction(jobs, month, limits);
    await endCompaction(jobs, row);
    test.equal(row.isWhole, false);
    return row.segments.map(({ rowCount }) => rowCount);
  };
  test.same(await sizes({ limits: { files: 3 } }), [1, 1, 1]);
  test.same(await sizes({ limits: { rows: 104 } }), [1, 1, 1, 1, 50, 50]);
  test.same(await sizes({ limits: { bytes: 899 } }), [1, 1, 1, 1, 50]);
  const row = await claimCompaction(jobs, month, { limits: { rows: 104 } });
  test.match(await commitCompaction(jobs, row, { removed: 1 }), { committed: false, revision: null });
  const again = await claimCompaction(jobs, month, { limits: { rows: 104 } });
  test.match(await commitCompaction(jobs, again), { committed: true });
  test.match(
    (await segmentsOf(month)).filter(({ unit_id: id }) => id === again.id),
    [{ distinct_keys: false }],
  );
  test.equal((await read(month)).length, 3);
});

t.test('files that are too large to be merged are left for an hour', async (test) => {
  const { month } = await world();
  test.equal(await tryCompaction(jobs, month, { limits: { rows: 1 } }), 'nothing');
  test.match(await rowOf(month), { waits: true, lease_expires_at: null });
  test.equal(await tryCompaction(jobs, month), 'waiting');
});

t.test('a month that gets a file meanwhile is not whole any more', async (test) => {
  const { place, month } = await world();
  const row = await claimCompaction(jobs, month);
  await publish(sql, place, 1);
  test.match(await commitCompaction(jobs, row, { removed: 1 }), { committed: false, revision: null });
  test.match(await commitCompaction(jobs, row, { removed: 1 }), { committed: false, revision: null }, 'a repeat');
  test.equal((await read(month)).length, 5);
  const again = await claimCompaction(jobs, month);
  await publish(sql, place, 1);
  test.match(await commitCompaction(jobs, again), { committed: true }, 'where nothing was left out it is a part');
  test.equal((await read(month)).length, 2);
  test.equal((await segmentsOf(month)).filter(({ distinct_keys: all }) => all).length, 0);
});

t.test('what is staged is not merged, and keeps a month from being whole', async (test) => {
  const { place, month } = await world();
  await publish(sql, place, 1, { staged: true });
  const row = await claimCompaction(jobs, month);
  test.match(row, { isWhole: false, segments: { length: 4 } });
  await commitCompaction(jobs, row);
  test.match(
    (await segmentsOf(month)).filter(({ staged }) => staged),
    [{ is_retired: false, published: null }],
  );
  await publish(sql, place, 4);
  test.match(await claimCompaction(jobs, month), { isWhole: false });
  const late = await world();
  const whole = await claimCompaction(jobs, late.month);
  await publish(sql, late.place, 1, { staged: true });
  test.match(await commitCompaction(jobs, whole, { removed: 1 }), { committed: false });
});

t.test('nothing is published where a file was retired meanwhile', async (test) => {
  const { month } = await world();
  const row = await claimCompaction(jobs, month);
  await sql.owner.query('update app.insight_segments set retired_at = now(), retired_revision = 2 where id = $1', [
    row.segments[0]?.id,
  ]);
  test.match(await commitCompaction(jobs, row), { committed: false, revision: null });
  test.equal((await segmentsOf(month)).length, 4);
});

t.test('one at a time merges, and nobody commits after its lease or with another claim', async (test) => {
  const { month } = await world();
  const dead = await claimCompaction(jobs, month);
  test.equal(await tryCompaction(jobs, month), 'leased');
  await endCompactionLease(sql, month);
  const calls = [
    (row: CompactionRow) => commitCompaction(jobs, row),
    (row: CompactionRow) => endCompaction(jobs, row),
    (row: CompactionRow) => endCompaction(jobs, row, { code: 'damaged', message: 'x' }),
  ];
  for (const send of calls) test.match(await refusal(send(dead)), late);
  test.equal(await tryCompaction(jobs, month), 'waiting', 'it may have died of what it has read');
  test.match(await rowOf(month), { failure_count: 1, last_error: { code: 'lease_expired' }, waits: true });
  await rows(`update app.insight_compactions set due_at = now() where source_id = $1`, month.sourceId);
  const next = await claimCompaction(jobs, month);
  test.equal(next.fence, 2);
  for (const send of calls) test.match(await refusal(send(dead)), late);
  for (const send of calls) test.match(await refusal(send({ ...next, fence: 1 })), late);
  for (const send of calls) test.match(await refusal(send({ ...next, month: '2026-02' })), late);
  test.match(await commitCompaction(jobs, next), { committed: true });
});

t.test('two claim at once, and one has it', async (test) => {
  const { month } = await world();
  const results = await Promise.all([tryCompaction(jobs, month), tryCompaction(sql.jobs, month)]);
  test.equal(results.filter((result) => result === 'leased').length, 1);
});

t.test('what fails waits, the longer the more often, and takes less each time', async (test) => {
  const { month } = await world(32);
  const counts: number[] = [];
  for (let failures = 0; failures < 4; failures += 1) {
    const row = await claimCompaction(jobs, month, { limits: { files: 32 } });
    counts.push(row.segments.length);
    test.match(await endCompaction(jobs, row, { code: 'damaged', message: 'no' }), { ended: true });
    test.match(await endCompaction(jobs, row, { code: 'damaged', message: 'no' }), { ended: true }, 'a repeat');
    test.match(await rowOf(month), {
      failure_count: failures + 1,
      last_error: { code: 'damaged', message: 'no' },
      waits: true,
    });
    test.equal(await tryCompaction(jobs, month), 'waiting');
    await rows('update app.insight_compactions set due_at = now() where source_id = $1', month.sourceId);
  }
  test.same(counts, [32, 16, 8, 4]);
  const row = await claimCompaction(jobs, month);
  test.match(await commitCompaction(jobs, row), { committed: true });
  test.match(await rowOf(month), { failure_count: 0, last_error: null, waits: null });
});

t.test('a process that stops gives its month back', async (test) => {
  const { month } = await world();
  const row = await claimCompaction(jobs, month);
  test.match(await endCompaction(jobs, row), { ended: true });
  test.match(await commitCompaction(jobs, row), { committed: false }, 'and does not come back to it');
  test.match(await claimCompaction(jobs, month), { fence: 2 });
});

t.test('facts of a newer schema, or of nobody here, are left', async (test) => {
  const { place, month } = await world();
  test.equal(await tryCompaction(jobs, month, { adapters: { stripe: {} } }), 'unknown');
  test.equal(await tryCompaction(jobs, month, { adapters: {} }), 'unknown');
  await passTime(sql, place);
  const unit = await claimed(jobs, place, { adapters: adapters(1, 2) });
  await commit(jobs, unit, { segments: [segment()] });
  test.equal(await tryCompaction(jobs, month), 'unknown');
  const row = await claimCompaction(jobs, month, { adapters: adapters(1, 2) });
  test.match(row, { schemaVersion: 2, segments: { length: 5 } });
  await commitCompaction(jobs, row);
  const [merged] = await rows('select schema_version from app.insight_segments where unit_id = $1', row.id);
  test.equal(merged.schema_version, 2);
});

t.test('another organization has none of it', async (test) => {
  const { month } = await world();
  const { organizationId } = await createTestOrganization(sql);
  test.equal(await tryCompaction(jobs, { ...month, organizationId }), 'gone');
  const row = await claimCompaction(jobs, month);
  test.match(await refusal(commitCompaction(jobs, { ...row, organizationId })), late);
  test.match(await refusal(endCompaction(jobs, { ...row, organizationId })), late);
});

t.test('a compaction waits for a unit that commits, and sees what has come', async (test) => {
  const { place, month } = await world();
  const row = await claimCompaction(jobs, month);
  const unit = await claimed(jobs, place);
  const [collects, compacts] = [
    await openSession(test, sql, 'runner_jobs'),
    await openSession(test, sql, 'runner_jobs'),
  ];
  await collects.begin();
  await commit(collects, unit, { segments: [segment()] });
  const committed = commitCompaction(compacts, row, { removed: 1 });
  await compacts.waits();
  await collects.commit();
  test.match(await committed, { committed: false });
});

const due = async (segments: number, options: { after?: string | null; organizations?: number } = {}) => {
  const { after = null, organizations = 1_000 } = options;
  return (await transition(jobs, 'insight_compactions_due', { segments, organizations, rows: 4, after })) as {
    partitions: { organizationId: string; month: string }[];
    after: string | null;
  };
};

t.test('months with many files are found, unless somebody is at them', async (test) => {
  const { org, place, month } = await world();
  const { organizationId } = org;
  await publish(sql, place, 0, { segments: Array.from({ length: 5 }, () => segment('2026-03')) });
  const mine = async (segments: number) =>
    (await due(segments)).partitions.filter((one) => one.organizationId === organizationId).map((one) => one.month);
  test.same(await mine(4), ['2026-03', '2026-01'], 'those with most before');
  test.same(await mine(5), ['2026-03']);
  test.same(await mine(6), []);
  const row = await claimCompaction(jobs, month);
  test.same(await mine(4), ['2026-03']);
  await endCompaction(jobs, row, { code: 'damaged', message: 'no' });
  test.same(await mine(4), ['2026-03'], 'or it waits');
  await rows('update app.insight_compactions set due_at = now() where source_id = $1', month.sourceId);
  await commitCompaction(jobs, await claimCompaction(jobs, month));
  test.same(await mine(4), ['2026-03'], 'what is retired does not count');
});

t.test('organizations are read in turns', async (test) => {
  const worlds = [await world(), await world()];
  const found: string[] = [];
  let after: string | null = null;
  do {
    const page = await due(4, { after, organizations: 1 });
    found.push(...page.partitions.map(({ organizationId }) => organizationId));
    after = page.after;
  } while (after !== null);
  for (const { org } of worlds) test.equal(found.filter((id) => id === org.organizationId).length, 1);
  await rows('update app.organizations set deleted_at = now() where id = $1', worlds[0]?.org.organizationId);
  const { partitions } = await due(4);
  test.notOk(partitions.some(({ organizationId }) => organizationId === worlds[0]?.org.organizationId));
  test.equal(await tryCompaction(jobs, worlds[0]?.month as Month), 'gone');
});

t.test('an empty source has nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const month = await publish(sql, place, 1);
  test.equal(await tryCompaction(jobs, month), 'nothing');
  test.equal(await rowOf(month), undefined, 'and leaves no row');
});
