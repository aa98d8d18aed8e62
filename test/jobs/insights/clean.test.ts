import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { insightSegmentKey, insightsPrefix } from '../../../engine/storage/index.ts';
import { claimCompaction, commitCompaction } from '../../support/compaction_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { createCollected } from '../../support/insight_fixtures.ts';
import { publishAll, publishFacts, seenOf, tellings } from '../../support/stored_facts.ts';
import { openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { openJobs, queued, runJob } from '../support.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);
const { storage } = jobs;
const HOUR_MS = 3_600_000;
const FILES = 'insights__clean_files';

const rows = async (text: string, ...values: unknown[]) => (await sql.owner.query(text, values)).rows;
const run = () => runJob(sql.owner, 'insights__clean');
const stored = async (organizationId: string) => {
  const { objects } = await storage.list(insightsPrefix(organizationId), { limit: 1_000 });
  return objects.map(({ key }) => key).sort();
};

/** Four files of a month that were retired so many hours ago, and what was made of them. */
async function world(hours: number) {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const place = await createCollected(sql, org);
  const month = await publishAll(sql, storage, place, tellings(4));
  const retired = await stored(organizationId);
  const row = await claimCompaction(sql.jobs, month);
  const objectKey = insightSegmentKey(organizationId, { ...month, unitId: row.id, fence: row.fence });
  const [one] = await rows('select * from app.insight_segments where source_id = $1 limit 1', month.sourceId);
  await storage.put(objectKey, await storage.get(one.object_key));
  const { row_count: rowCount, size_bytes: size, sha256, min_at: minAt, max_at: maxAt } = one;
  await commitCompaction(sql.jobs, row, {
    segment: { objectKey, rowCount, sizeBytes: Number(size), sha256, minAt, maxAt },
  });
  await rows(
    'update app.insight_segments set retired_at = now() - make_interval(hours => $2) where source_id = $1 and retired_at is not null',
    month.sourceId,
    hours,
  );
  return { organizationId, place, month, retired, kept: objectKey };
}
const left = async ({ sourceId }: { sourceId: string }) =>
  (await rows('select object_key from app.insight_segments where source_id = $1', sourceId))
    .map((row) => row.object_key)
    .sort();

t.test('files go a day after nothing reads them any more, and what is staged stays', async (test) => {
  const [old, recent] = [await world(25), await world(23)];
  await publishFacts(sql, storage, old.place, [{ key: 'staged' }], { staged: true });
  const staged = (await stored(old.organizationId)).filter((key) => ![...old.retired, old.kept].includes(key));
  const pinned = await seenOf(sql, storage, recent.month, 4);
  await run();
  test.same(await stored(old.organizationId), [old.kept, ...staged].sort());
  test.same(await left(old.month), [old.kept, ...staged].sort());
  test.same(await stored(recent.organizationId), [...recent.retired, recent.kept].sort());
  test.match(
    await seenOf(sql, storage, recent.month, 4),
    { files: 4, sha256: pinned.sha256 },
    'an old revision reads on',
  );
  await run();
  test.same(await left(old.month), [old.kept, ...staged].sort(), 'a second time changes nothing');
});

t.test('objects that a crash removed before their rows are no obstacle', async (test) => {
  const { organizationId, month, retired, kept } = await world(25);
  await storage.delete(retired[0] ?? '');
  await run();
  test.same(await stored(organizationId), [kept]);
  test.same(await left(month), [kept]);
});

t.test('more than a page of one organization goes, and what cannot be removed holds up nothing', async (test) => {
  const [broken, other] = [await world(30), await world(25)];
  const [stuck] = broken.retired;
  if (stuck === undefined) throw new Error('there is no file');
  await rows(
    `insert into app.insight_segments (organization_id, source_id, month, object_key, unit_id, row_count, size_bytes, sha256, min_at,
       max_at, schema_version, retired_at)
     select organization_id, source_id, month, object_key || n, unit_id, 1, 1, sha256, min_at, max_at, 1, retired_at
     from app.insight_segments, generate_series(1, 450) n where object_key = $1`,
    stuck,
  );
  await rows(`update app.insight_segments set retired_at = now() - interval '40 hours' where object_key = $1`, stuck);
  // In place of the object lies what cannot be unlinked.
  const place = path.join(fileURLToPath(jobs.storageUrl), stuck);
  await rm(place);
  await mkdir(path.join(place, 'inside'), { recursive: true });
  await run();
  test.same(await left(broken.month), [stuck, broken.kept].sort());
  test.same(await left(other.month), [other.kept]);
  const logged = jobs.logged.filter(({ msg }) => msg === 'files of facts stay for now');
  test.match(logged, [{ level: 'error', key: stuck, organizationId: broken.organizationId, objects: 1 }]);
  await rm(place, { recursive: true });
  await run();
  test.same(await left(broken.month), [broken.kept], 'the next run tries it again');
});

/** A version 7 UUID of a moment so many hours ago. */
function unitId(hours: number): string {
  const time = (Date.now() - hours * HOUR_MS).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`;
}

t.test('files that no row names go after a day, and not before', async (test) => {
  const { organizationId, month, retired, kept } = await world(2);
  const put = async (hours: number, fence: number) => {
    const key = insightSegmentKey(organizationId, { ...month, unitId: unitId(hours), fence });
    await storage.put(key, Readable.from([Buffer.from('facts')]));
    return key;
  };
  for (let fence = 1; fence <= 210; fence += 1) await put(25, fence);
  const young = await put(23, 1);
  await run();
  test.equal((await stored(organizationId)).length, 216, 'an organization is looked at once a day');
  await rows('update app.insight_heads set sweep_at = now() where organization_id = $1', organizationId);
  await run();
  await until('they are gone', async () => (await queued(sql.owner, FILES)).length === 0);
  test.same(await stored(organizationId), [...retired, kept, young].sort());
  const [head] = await rows(
    "select sweep_at > now() + interval '23 hours' as later from app.insight_heads where organization_id = $1",
    organizationId,
  );
  test.same(head, { later: true });
});

t.test('files of a deleted organization are left to its deletion', async (test) => {
  const { organizationId, month, retired, kept } = await world(25);
  const key = insightSegmentKey(organizationId, { ...month, unitId: unitId(30), fence: 1 });
  await storage.put(key, Readable.from([Buffer.from('facts')]));
  await rows('update app.organizations set deleted_at = now() where id = $1', organizationId);
  await run();
  await runJob(sql.owner, FILES, { organizationId });
  test.same(await stored(organizationId), [...retired, kept, key].sort());
});
