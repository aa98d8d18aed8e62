import t from 'tap';
import { openSite } from '../../../engine/net/support.ts';
import { codes, ended, evidenceOf, PRIVATE, pathsOf, shop, start } from '../../../jobs/onboardings/support.ts';
import { spawnJobs } from '../../../jobs/support.ts';
import { openFolder } from '../../../support/folders.ts';
import { placeOf, publishCatalog, read } from '../../../support/onboarding_fixtures.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);
await publishCatalog(sql);

t.test('kill -9 in the middle: another process goes on, and the evidence is whole', async (t) => {
  let hold = true;
  const site = await openSite(
    t,
    shop((path) => (path === '/prices' && hold ? new Promise(() => {}) : undefined)),
  );
  const folder = await openFolder(t);
  const settings = { ...PRIVATE, STORAGE_URL: `file://${folder}/files` };
  const onboarding = await start(sql, { website: site.origin });
  const first = await spawnJobs(t, sql.url, settings);
  await until('it reads the third page', () => site.paths.includes('/prices'));
  await first.kill('SIGKILL');
  hold = false;
  const before = await evidenceOf(sql, onboarding);
  t.same(
    before.map(({ title }) => title),
    ['Acme', 'About Acme'],
  );
  t.match(await read(sql, placeOf(onboarding)), { status: 'researching', research_status: 'running' });

  const second = await spawnJobs(t, sql.url, settings);
  const done = await ended(sql, onboarding, 60_000);
  t.match(done, { status: 'review', research_attempts: 1 });
  t.same(codes(done), []);
  const after = await evidenceOf(sql, done);
  t.same(after.slice(0, 2), before);
  t.same(
    after.map(({ title }) => title),
    ['Acme', 'About Acme', 'Prices'],
  );
  t.same(pathsOf(site), ['/', '/about', '/prices', '/prices'], 'no page that was kept is asked for again');
  t.equal(done.findings.length, 2);
  await second.kill('SIGTERM');
});

t.test('a stop in the middle leaves the attempt to the next process', async (t) => {
  let hold = true;
  const site = await openSite(
    t,
    shop((path) => (path === '/prices' && hold ? new Promise(() => {}) : undefined)),
  );
  const folder = await openFolder(t);
  const settings = { ...PRIVATE, STORAGE_URL: `file://${folder}/files` };
  const onboarding = await start(sql, { website: site.origin });
  const first = await spawnJobs(t, sql.url, settings);
  await until('it reads the third page', () => site.paths.includes('/prices'));
  t.equal(await first.kill('SIGTERM'), 0);
  hold = false;
  t.match(await read(sql, placeOf(onboarding)), { status: 'researching' });
  const second = await spawnJobs(t, sql.url, settings);
  const done = await ended(sql, onboarding, 60_000);
  t.match(done, { status: 'review', research_attempts: 1 });
  t.equal((await evidenceOf(sql, done)).length, 3);
  await second.kill('SIGTERM');
});
