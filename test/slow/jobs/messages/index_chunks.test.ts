import t, { type Test } from 'tap';
import { functionText } from '../../../../engine/db/function_text.ts';
import { createLogger } from '../../../../engine/log.ts';
import { messagesIndexChunks } from '../../../../jobs/messages/index_chunks.ts';
import type { JobContext } from '../../../../jobs/runner/handler.ts';
import { openServices } from '../../../../jobs/runner/services.ts';
import { collectLog, jobsConfig, openJobs, queued } from '../../../jobs/support.ts';
import { createChat, createChatOrganization, send, text, waitingChunks } from '../../../support/chat_fixtures.ts';
import { foundTitles } from '../../../support/chat_search.ts';
import type { TestOrganization } from '../../../support/fixtures.ts';
import { openSql, type Sql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

type Started = Readonly<{ context: JobContext; logged: readonly Record<string, unknown>[]; stop: () => void }>;

async function openContext(test: Test, sql: Sql): Promise<Started> {
  const { logged, write } = collectLog();
  const services = openServices(
    await jobsConfig(test, sql.url),
    createLogger('info', 'jobs', { destination: { write } }),
  );
  test.teardown(() => services.close());
  const stopping = new AbortController();
  const context = { ...services, jobId: '1', attempt: 1, addJob: async () => {}, signal: stopping.signal };
  return { context, logged, stop: () => stopping.abort() };
}

/** A message of a new chat that takes several pieces, with a word at its end. */
async function sayLong(sql: Sql, org: TestOrganization, word: string): Promise<string> {
  const { id } = await createChat(sql, org);
  const parts = Array.from({ length: 3 }, () => text('.'.repeat(99_000)));
  return (await send(sql.api, org, id, { parts: [...parts, text(word)] })).userMessage.id;
}

const isFound = async (sql: Sql, org: TestOrganization, word: string) => (await foundTitles(sql, org, word)).length > 0;

t.test('the process indexes long messages soon after they are written', async (test) => {
  const sql = await openSql(test);
  const jobs = await openJobs(test, sql.url);
  for (const word of ['aardvark', 'bandicoot']) {
    const org = await createChatOrganization(sql);
    await sayLong(sql, org, word);
    await sayLong(sql, org, word);
    await until('its end is found', () => isFound(sql, org, word));
    await until('both are done', async () => (await waitingChunks(sql, org)).length === 0);
  }
  await until('the job ends', async () => (await queued(sql.owner, 'messages__index_chunks')).length === 0);
  test.same(
    jobs.logged.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
});

t.test('organizations take turns', async (test) => {
  const sql = await openSql(test);
  const [many, one] = [await createChatOrganization(sql), await createChatOrganization(sql)];
  const first: string[] = [];
  for (let n = 0; n < 12; n += 1) first.push(await sayLong(sql, many, 'much'));
  const last = await sayLong(sql, one, 'little');
  const { rows } = await sql.jobs.query(
    `select message_id from ${functionText('message_chunks_due', { organizations: '10', rows: '3' })}`,
  );
  test.same(
    rows.map((row) => row.message_id),
    [first[0], last, first[1], first[2]],
  );
  const { context } = await openContext(test, sql);
  test.equal(await messagesIndexChunks({}, context), 'done');
  test.same([await waitingChunks(sql, many), await waitingChunks(sql, one)], [[], []], 'all of them');
  const { rows: times } = await sql.owner.query(
    `select organization_id = $1 as little, max(due_at) as at from app.message_chunks group by message_id, 1 order by at`,
    [one.organizationId],
  );
  test.ok(times.findIndex(({ little }) => little) < 10, 'the little one was done before the many');
});

t.test('a message that cannot be indexed stops no other, is told, and waits', async (test) => {
  const sql = await openSql(test);
  const org = await createChatOrganization(sql);
  const [broken, fine] = [await sayLong(sql, org, 'cassowary'), await sayLong(sql, org, 'dugong')];
  await sql.owner.query(`
    create function broken() returns trigger language plpgsql as $$ begin raise exception 'broken on purpose'; end $$;
    create trigger broken before update of search_text on app.message_chunks for each row
      when (old.message_id = '${broken}') execute function broken()`);
  const { context, logged } = await openContext(test, sql);
  test.equal(await messagesIndexChunks({}, context), 'done');
  test.ok(await isFound(sql, org, 'dugong'), fine);
  test.notOk(await isFound(sql, org, 'cassowary'));
  test.match(logged, [{ level: 'error', messageId: broken, msg: 'a long message is not indexed for now' }]);
  test.equal(logged.length, 1);
  test.same(await waitingChunks(sql, org), []);
  await sql.owner.query('drop trigger broken on app.message_chunks');
  await sql.owner.query('update app.message_chunks set due_at = clock_timestamp() where search_text is null');
  test.equal(await messagesIndexChunks({}, context), 'done');
  test.ok(await isFound(sql, org, 'cassowary'));
});

t.test('a process that stops leaves off, and another one goes on', async (test) => {
  const sql = await openSql(test);
  const org = await createChatOrganization(sql);
  const messageId = await sayLong(sql, org, 'echidna');
  const { context, stop } = await openContext(test, sql);
  stop();
  test.equal(await messagesIndexChunks({}, context), 'unfinished');
  test.same(await waitingChunks(sql, org), [messageId]);
  const { context: other } = await openContext(test, sql);
  test.equal(await messagesIndexChunks({}, other), 'done');
  test.ok(await isFound(sql, org, 'echidna'));
});

t.test('after twenty seconds it leaves the rest to a job after those that wait', async (test) => {
  const sql = await openSql(test);
  const org = await createChatOrganization(sql);
  await sayLong(sql, org, 'fossa');
  await sayLong(sql, org, 'gerenuk');
  const { context } = await openContext(test, sql);
  const { now } = Date;
  let passed = 0;
  test.intercept(Date, 'now', { value: () => now() + passed });
  // Each piece takes eleven.
  const db: JobContext['db'] = {
    ...context.db,
    async one(...args: Parameters<JobContext['db']['one']>) {
      const row = await context.db.one(...args);
      passed += 11_000;
      return row;
    },
  } as JobContext['db'];
  test.equal(await messagesIndexChunks({}, { ...context, db }), 'unfinished');
  test.equal(passed, 22_000, 'none is begun after that');
  test.ok((await waitingChunks(sql, org)).length > 0);
  passed = 0;
  test.equal(await messagesIndexChunks({}, context), 'done');
  test.ok((await isFound(sql, org, 'fossa')) && (await isFound(sql, org, 'gerenuk')));
});
