import t from 'tap';
import { openSite } from '../../../engine/net/support.ts';
import { ended, evidenceOf, PRIVATE, pathsOf, shop, start } from '../../../jobs/onboardings/support.ts';
import { openJobs, queued } from '../../../jobs/support.ts';
import { openModel } from '../../../support/model_server.ts';
import { publishCatalog } from '../../../support/onboarding_fixtures.ts';
import { openSession, openSql, transition } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);
await publishCatalog(sql);

t.test('an attempt that fails on our side is tried again, then failed; the retry doubles no evidence', async (t) => {
  const site = await openSite(t, shop());
  const { storage } = await openJobs(t, sql.url, PRIVATE);
  // What a job reads back is not there: keeping the second page cannot be recorded.
  await sql.owner.query(`
    create function app.test_refuse() returns trigger language plpgsql as
      $$ begin if new.title = 'Prices' then raise exception 'no room'; end if; return new; end $$;
    create trigger test_refuse before insert on app.context_sources for each row execute function app.test_refuse()`);
  const onboarding = await start(sql, { website: site.origin });
  const job = () => queued(sql.owner, 'onboardings__research');
  for (const attempts of [1, 2, 3]) {
    // The queue waits longer and longer.
    await until(
      'it failed',
      async () => (await job())[0]?.attempts === attempts && (await job())[0]?.last_error !== null,
    );
    await until('it is free', async () => (await job())[0]?.locked_by === null);
    await sql.owner.query('update graphile_worker._private_jobs set run_at = now()');
    await sql.owner.query(`select pg_notify('jobs:insert', '{"count": 1}')`);
  }
  const failed = await ended(sql, onboarding);
  t.match(failed, {
    status: 'research_failed',
    research_error: { code: 'internal_error', retryable: true, message: /Retry/ },
    review: null,
  });
  const before = await evidenceOf(sql, failed);
  t.same(
    before.map(({ title }) => title),
    ['Acme', 'About Acme'],
  );
  t.same(
    pathsOf(site),
    ['/', '/about', '/prices', '/prices', '/prices', '/prices'],
    'what is kept is not asked for again',
  );

  const stored = async () => (await storage.list(`organizations/${failed.organization_id}/`)).objects.length;
  const storedBefore = await stored();
  await sql.owner.query('drop trigger test_refuse on app.context_sources; drop function app.test_refuse');
  await transition(sql.api, 'onboarding_research_retry', {
    organizationId: failed.organization_id,
    expectedGeneration: failed.generation,
  });
  const done = await ended(sql, failed);
  t.match(done, { status: 'review', research_attempts: 2 });
  const after = await evidenceOf(sql, done);
  t.same(after.slice(0, 2), before);
  t.same(
    after.map(({ title }) => title),
    ['Acme', 'About Acme', 'Prices'],
  );
  t.equal(await stored(), storedBefore + 1, 'and no bytes lie there twice');
});

t.test('an attempt that outlasts its time as a whole has failed, and says so', async (t) => {
  const site = await openSite(t, shop());
  const model = await openModel(t, () => JSON.stringify({ claims: [] }));
  const settings = { ...PRIVATE, RESEARCH_LLM_URL: model.url, RESEARCH_LLM_MODEL: 'small', RESEARCH_SECONDS: '3' };
  await openJobs(t, sql.url, settings);
  // The website has a share of the time. The database has none: writing the first page down outlasts the whole.
  const holder = await openSession(t, sql, 'owner');
  await holder.begin();
  await holder.query('lock table app.context_sources in share mode', []);
  const onboarding = await start(sql, { website: site.origin });
  await until('a page has waited for longer than the attempt may take', async () => {
    const { rows } = await sql.owner.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query_start < clock_timestamp() - interval '4 seconds'`,
    );
    return rows.length > 0;
  });
  await holder.commit();
  const late = await ended(sql, onboarding);
  t.match(late, {
    status: 'research_failed',
    research_attempts: 1,
    research_error: { code: 'timed_out', retryable: true, message: /longer than 3 seconds/ },
    review: null,
  });
  await until('the job is over', async () => (await queued(sql.owner, 'onboardings__research')).length === 0);
  t.same(pathsOf(site), ['/'], 'no page is asked for any more, and the job is not tried again by itself');
  t.same(model.requests, [], 'nor is the model asked');
  t.equal((await evidenceOf(sql, late)).length, 1, 'what was read is kept');
  const again = await transition(sql.api, 'onboarding_research_retry', {
    organizationId: late.organization_id,
    expectedGeneration: late.generation,
  });
  t.match(again, { onboarding: { status: 'researching', research_attempts: 2, research_error: null } });
});

t.test('a job that its process never survives is given up', async (t) => {
  const site = await openSite(t, shop());
  const onboarding = await start(sql, { website: site.origin });
  await sql.owner.query(
    `update graphile_worker._private_jobs set attempts = 8
     where id in (select id from graphile_worker.jobs where task_identifier = 'onboardings__research')`,
  );
  await openJobs(t, sql.url, PRIVATE);
  t.match(await ended(sql, onboarding), { status: 'research_failed', research_error: { code: 'internal_error' } });
  t.equal(site.connections(), 0);
});
