import { randomUUID } from 'node:crypto';
import t from 'tap';
import { functionText } from '../../../engine/db/function_text.ts';
import {
  createProposer,
  createSibling,
  declaredFile,
  endedAgo,
  grantGateway,
  invocationFiles,
  type Proposer,
  propose,
  proposeAction,
  renewed,
} from '../../support/action_fixtures.ts';
import { createTestOrganization, endLease } from '../../support/fixtures.ts';
import { createConnected } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };
const notFound = { status: 404, code: 'not_found' };
const conflict = (reason: string) => ({ status: 409, code: 'state_conflict', reason });
const NOTE = declaredFile('note');
const key = () => `invocations/${randomUUID()}`;

/** Others to whom nothing of an execution belongs, by name. */
async function others(by: Proposer): Promise<Record<string, Proposer>> {
  const integration = await createConnected(sql, by.org, { key: 'other' });
  const stranger = await createProposer(sql);
  return {
    run: await createSibling(sql, by),
    integration: await grantGateway(sql, by.org, integration, by.run),
    organization: stranger,
    'its capability elsewhere': { ...by, org: stranger.org },
  };
}

scenario('an upload that was begun is stored once, and is the same ever after', async (test) => {
  const by = await createProposer(sql);
  const files = invocationFiles(sql.api, by, 'send');
  const id = randomUUID();
  const begun = await files.begin(id, NOTE, 'uploads/1');
  test.same(begun, { uploadKey: 'uploads/1' });
  test.same(await files.begin(id, NOTE, 'uploads/2'), begun, 'the place stays');
  test.match(await refusal(files.find(id)), notFound, 'nothing is stored');
  test.same(await files.complete(id, NOTE, null), { file: null, stored: false, uploadKey: 'uploads/1' });
  const file = { fileId: id, ...NOTE };
  test.same(await files.complete(id, NOTE, 'files/1'), { file, stored: true, uploadKey: 'uploads/1' });
  test.same(await files.complete(id, NOTE, 'files/2'), { file, stored: false, uploadKey: 'uploads/1' });
  test.same(await files.put(id, NOTE, 'files/3'), { file, stored: false, uploadKey: 'uploads/1' });
  test.same(await files.find(id), [{ ...file, storageKey: 'files/1' }]);
  test.same(await files.begin(id, NOTE, 'uploads/3'), begun, 'a caller that begins again may go on');
  for (const change of [{ name: 'n' }, { contentType: 'text/csv' }, { sizeBytes: 5 }, { sha256: 'f'.repeat(64) }]) {
    const other = { ...NOTE, ...change };
    test.match(await refusal(files.begin(id, other)), conflict('differs'));
    test.match(await refusal(files.complete(id, other, null)), conflict('differs'));
    test.match(await refusal(files.put(id, other, key())), conflict('differs'));
  }
});

scenario('a file that is sent at once is stored, also in place of an upload that was begun', async (test) => {
  const by = await createProposer(sql);
  const files = invocationFiles(sql.api, by, 'send');
  const [id, begun] = [randomUUID(), randomUUID()];
  test.same(await files.put(id, null, null), { file: null, stored: false, uploadKey: null });
  test.match(await files.put(id, NOTE, 'files/1'), { stored: true });
  test.match(await files.put(id, null, null), { file: { fileId: id }, stored: false });
  test.match(await refusal(files.complete(id, NOTE, null)), notFound, 'no upload of it was begun');
  await files.begin(begun, NOTE);
  test.match(await files.put(begun, NOTE, 'files/2'), { stored: true });
  test.match(await files.complete(begun, NOTE, null), { file: { fileId: begun } });
  test.match(await files.find(begun, id), [{ storageKey: 'files/2' }, { storageKey: 'files/1' }]);
});

scenario('of two that store one file at once one does, and both have it', async (test) => {
  const by = await createProposer(sql);
  const id = randomUUID();
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, n) => invocationFiles(sql.api, by, 'send').put(id, NOTE, `files/${n}`)),
  );
  test.equal(results.filter(({ stored }) => stored).length, 1);
  test.ok(results.every((result) => (result['file'] as JsonObject | null)?.['fileId'] === id));
  const begun = randomUUID();
  const places = await Promise.all(Array.from({ length: 10 }, () => invocationFiles(sql.api, by, 'send').begin(begun)));
  test.equal(new Set(places.map(({ uploadKey }) => uploadKey)).size, 1);
});

scenario('a file belongs to its invocation, execution, integration and organization alone', async (test) => {
  const by = await createProposer(sql);
  const [stored, begun] = [randomUUID(), randomUUID()];
  const own = invocationFiles(sql.api, by, 'send');
  await own.put(stored, NOTE, 'files/1');
  await own.begin(begun);
  const elsewhere = Object.entries(await others(by)).map(
    ([name, other]) => [name, invocationFiles(sql.api, other, 'send')] as const,
  );
  for (const [name, files] of [
    ...elsewhere,
    ['invocation', invocationFiles(sql.api, await renewed(sql, by), 'else')] as const,
  ]) {
    const refused = name.startsWith('its') ? unauthorized : notFound;
    test.match(await refusal(files.find(stored)), refused, name);
    test.match(await refusal(files.complete(begun, NOTE, null)), refused, name);
    test.match(await refusal(files.complete(begun, NOTE, 'files/2')), refused, name);
  }
  const next = invocationFiles(sql.api, await renewed(sql, by), 'send');
  test.match(await next.find(stored), [{ fileId: stored }], 'another capability of the execution goes on');
  test.match(await next.complete(begun, NOTE, 'files/2'), { stored: true });
});

scenario('nothing is taken once the lease has ended', async (test) => {
  const by = await createProposer(sql);
  const files = invocationFiles(sql.api, by, 'send');
  const id = randomUUID();
  await files.begin(id);
  await endLease(sql, by.run);
  const calls = [
    () => files.begin(id),
    () => files.put(id, null, null),
    () => files.complete(id, NOTE, 'files/1'),
    () => files.find(id),
  ];
  for (const call of calls) test.match(await refusal(call()), unauthorized);
});

scenario('an execution has so many files and no more', async (test) => {
  const by = await createProposer(sql);
  const files = invocationFiles(sql.api, by, 'send');
  const id = randomUUID();
  await files.put(id, NOTE, 'files/1');
  await sql.owner.query(
    `insert into app.action_invocation_files (organization_id, run_id, integration_id, invocation_id, id, name, content_type,
       size_bytes, sha256, storage_key, stored_at)
     select organization_id, run_id, integration_id, 'more', gen_random_uuid(), name, content_type, size_bytes, sha256, 'k', now()
     from app.action_invocation_files, generate_series(1, 998) where id = $1`,
    [id],
  );
  const ids = [randomUUID(), randomUUID(), randomUUID()];
  const results = await Promise.allSettled(ids.map((one) => files.put(one, NOTE, key())));
  test.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
  test.match(await refusal(files.put(randomUUID(), null, null)), conflict('too_many_files'), 'before any bytes');
  test.match(await refusal(files.begin(randomUUID())), conflict('too_many_files'));
  test.match(await files.put(id, NOTE, key()), { stored: false }, 'those that are there are not counted again');
});

const named = (argument: string, fileId: string, storageKey: string) => ({ argument, fileId, ...NOTE, storageKey });

scenario('an action takes stored files of its own invocation alone', async (test) => {
  const by = await createProposer(sql);
  const [stored, begun, elsewhere] = [randomUUID(), randomUUID(), randomUUID()];
  await invocationFiles(sql.api, by, 'send').put(stored, NOTE, 'files/1');
  await invocationFiles(sql.api, by, 'send').begin(begun, NOTE, 'uploads/1');
  await invocationFiles(sql.api, by, 'else').put(elsewhere, NOTE, 'files/2');
  for (const file of [
    named('body', begun, 'uploads/1'),
    named('body', elsewhere, 'files/2'),
    named('body', stored, 'files/2'),
  ]) {
    test.match(await refusal(proposeAction(sql.api, by, { invocationId: 'send', files: [file] })), notFound);
  }
  const files = [named('body', stored, 'files/1'), named('copy', stored, 'files/1')];
  const action = await propose(sql, by, { invocationId: 'send', files });
  const { rows } = await sql.owner.query(
    'select argument, name, size_bytes::integer, storage_key from app.action_files where action_id = $1 order by 1',
    [action.id],
  );
  test.same(
    rows,
    ['body', 'copy'].map((argument) => ({ argument, name: 'note.txt', size_bytes: 4, storage_key: 'files/1' })),
  );
});

/** What of a run a job removes: as told first, then done. */
async function remove(by: Proposer, rows = 100) {
  const args = { organizationId: by.org.organizationId, runId: by.run.runId, rows };
  const told = await transition(sql.jobs, 'action_invocations_remove', args);
  const removed = told['keys'] as string[];
  const done = await transition(sql.jobs, 'action_invocations_remove', { ...args, removed });
  t.same(told, done, 'the result names what is done');
  return told;
}

const DUE = functionText('action_invocations_due', { organizations: '100', rows: '100' });

async function dueRuns(by: Proposer): Promise<string[]> {
  const { rows } = await sql.jobs.query(`select run_id from ${DUE} where organization_id = $1`, [
    by.org.organizationId,
  ]);
  return rows.map(({ run_id }) => run_id);
}

scenario('files and responses go a day after the execution, unless an action sends them', async (test) => {
  const by = await createProposer(sql);
  const files = invocationFiles(sql.api, by, 'send');
  const [held, left, begun] = [randomUUID(), randomUUID(), randomUUID()];
  await files.put(held, NOTE, 'files/held');
  await files.put(left, NOTE, 'files/left');
  await files.begin(begun, NOTE, 'uploads/begun');
  await propose(sql, by, { invocationId: 'send', files: [named('body', held, 'files/held')] });
  await sql.owner.query(
    `insert into app.action_invocations (organization_id, run_id, integration_id, invocation_id, body_sha256, lease_id,
       response_key) values ($1, $2, $3, 'read', repeat('a', 64), gen_random_uuid(), 'responses/1')`,
    [by.org.organizationId, by.run.runId, by.integration.id],
  );
  test.same(await dueRuns(by), []);
  test.same(await remove(by), { rows: 0, keys: [] }, 'it goes on');
  await endedAgo(sql, by, 23);
  test.same(await dueRuns(by), [by.run.runId]);
  test.same(await remove(by), { rows: 0, keys: [] }, 'a day has not passed');
  test.same(await dueRuns(by), [], 'it is looked at again then');
  await endedAgo(sql, by, 25);
  const told = await remove(by);
  test.equal(told['rows'], 5);
  test.same([...(told['keys'] as string[])].sort(), ['files/left', 'responses/1', 'uploads/begun']);
  test.same(await remove(by), { rows: 0, keys: [] });
  test.same(await dueRuns(by), []);
});

scenario('an upload that is not completed goes a day after its URL, also while the execution goes on', async (test) => {
  const by = await createProposer(sql);
  const files = invocationFiles(sql.api, by, 'send');
  const [abandoned, fresh, stored] = [randomUUID(), randomUUID(), randomUUID()];
  for (const id of [abandoned, fresh, stored]) await files.begin(id, NOTE, `uploads/${id}`);
  await files.complete(stored, NOTE, 'files/1');
  await sql.owner.query(
    `update app.action_invocation_files set upload_expires_at = now() - interval '25 hours', remove_at = now()
     where run_id = $1 and id <> $2`,
    [by.run.runId, fresh],
  );
  test.same(await dueRuns(by), [by.run.runId]);
  test.same(await remove(by), { rows: 1, keys: [`uploads/${abandoned}`] });
  test.match(await refusal(files.complete(abandoned, NOTE, null)), notFound);
  test.match(await files.begin(abandoned, NOTE, 'uploads/again'), { uploadKey: 'uploads/again' });
  test.match(await files.find(stored), [{ fileId: stored }]);
  test.same(await dueRuns(by), []);
});

scenario('so many at a time, and those of other organizations not at all', async (test) => {
  const [by, stranger] = [await createProposer(sql), await createProposer(sql)];
  for (let n = 0; n < 5; n += 1) await invocationFiles(sql.api, by, `i${n}`).put(randomUUID(), NOTE, `files/${n}`);
  await endedAgo(sql, by, 25);
  const foreign = { organizationId: stranger.org.organizationId, runId: by.run.runId, rows: 10, removed: [] };
  test.same(await transition(sql.jobs, 'action_invocations_remove', foreign), { rows: 0, keys: [] });
  test.same((await remove(by, 2))['keys'], ['files/0', 'files/1']);
  test.same((await remove(by, 2))['keys'], ['files/2', 'files/3']);
  test.same((await remove(by, 2))['keys'], ['files/4']);
});

scenario('rows whose objects stay are put off, ever longer, and the others go', async (test) => {
  const by = await createProposer(sql);
  const args = { organizationId: by.org.organizationId, runId: by.run.runId, rows: 2 };
  const stays = randomUUID();
  const files = invocationFiles(sql.api, by, 'a');
  await files.begin(stays, NOTE, 'uploads/stays');
  await files.complete(stays, NOTE, 'files/goes');
  for (const n of [1, 2]) await invocationFiles(sql.api, by, `b${n}`).put(randomUUID(), NOTE, `files/${n}`);
  await sql.owner.query(
    `insert into app.action_invocations (organization_id, run_id, integration_id, invocation_id, body_sha256, lease_id,
       response_key) values ($1, $2, $3, 'read', repeat('a', 64), gen_random_uuid(), 'responses/stays')`,
    [by.org.organizationId, by.run.runId, by.integration.id],
  );
  const minutesOff = async () => {
    const { rows } = await sql.owner.query(
      `select round(extract(epoch from remove_at - now()) / 60)::integer as minutes from (
         select remove_at from app.action_invocation_files where run_id = $1
         union all select remove_at from app.action_invocations where run_id = $1) r`,
      [by.run.runId],
    );
    return rows.map(({ minutes }) => minutes);
  };
  await endedAgo(sql, by, 25);
  test.same(await transition(sql.jobs, 'action_invocations_remove', { ...args, removed: ['files/goes', 'files/1'] }), {
    rows: 3,
    keys: ['uploads/stays', 'files/goes', 'files/1', 'responses/stays'],
  });
  test.same((await remove(by))['keys'], ['files/2'], 'those behind it are not held up');
  test.same(await minutesOff(), [60, 60]);
  test.same(await dueRuns(by), []);
  for (const [hours, minutes] of [
    [24, 55],
    [29, 300],
    [100, 1440],
  ] as const) {
    await endedAgo(sql, by, hours);
    await transition(sql.jobs, 'action_invocations_remove', { ...args, removed: [] });
    test.same(await minutesOff(), [minutes, minutes], `${hours} hours`);
  }
  await endedAgo(sql, by, 100);
  test.equal((await remove(by))['rows'], 2);
  test.same(await minutesOff(), []);
});

scenario('a proposal and the removal of its file exclude each other', async (test) => {
  const by = await createProposer(sql);
  const id = randomUUID();
  await invocationFiles(sql.api, by, 'send').put(id, NOTE, 'files/1');
  const [remover, proposer] = [await openSession(test, sql, 'owner'), await openSession(test, sql)];
  await remover.begin();
  await remover.query('delete from app.action_invocation_files where id = $1', [id]);
  const file = named('body', id, 'files/1');
  const proposed = refusal(proposeAction(proposer, by, { invocationId: 'send', files: [file] }));
  await proposer.waits();
  await remover.commit();
  test.match(await proposed, notFound);
});

scenario('an organization that is not there has no files', async (test) => {
  const by = await createProposer(sql);
  const org = await createTestOrganization(sql);
  test.match(await refusal(invocationFiles(sql.api, { ...by, org }, 'send').begin(randomUUID())), unauthorized);
});
