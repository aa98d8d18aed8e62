import path from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { openStorage, organizationPrefix, runOutputKey } from '../../engine/storage/index.ts';
import { createPlace, runNew } from '../support/fixtures.ts';
import { openFolder } from '../support/folders.ts';
import { openSession, openSql, transition } from '../support/transitions.ts';
import { until } from '../support/wait.ts';
import { openJobs, queued, spawnJobs } from './support.ts';

const sql = await openSql(t);

t.test('a deletion whose process is killed in the middle is completed by another', async (t) => {
  const STORAGE_URL = pathToFileURL(path.join(await openFolder(t), 'files')).href;
  const storage = openStorage(STORAGE_URL);
  const place = await createPlace(sql);
  const { organizationId } = place;
  const run = await runNew(sql, place);
  await storage.put(runOutputKey(organizationId, run.runId), Readable.from([Buffer.from('bytes')]));
  const session = await openSession(t, sql, 'owner');
  await session.begin();
  await session.query('select from app.runs where id = $1 for key share', [run.runId]);

  const killed = await spawnJobs(t, sql.url, { STORAGE_URL });
  await transition(sql.api, 'organization_delete', { p_organization_id: organizationId });
  await until('it stands in the middle', async () => {
    const { rows } = await sql.owner.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%organization_purge%'`,
    );
    return rows.length > 0;
  });
  await killed.kill('SIGKILL');
  await session.rollback();
  t.match(await queued(sql.owner, 'organizations__delete'), [{ attempts: 1 }, { attempts: 0, locked_by: null }]);

  const { logged } = await openJobs(t, sql.url, { STORAGE_URL });
  await until(
    'only the late pass is left',
    async () => (await queued(sql.owner, 'organizations__delete')).length === 1,
  );
  t.ok(logged.some(({ msg }) => msg === 'the jobs of a process that died run again'));
  const { rows } = await sql.owner.query('select from app.tasks where organization_id = $1', [organizationId]);
  t.equal(rows.length, 0);
  t.same(await storage.list(organizationPrefix(organizationId)), { objects: [], next: null });
});
