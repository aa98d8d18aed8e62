import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { sql } from 'slonik';
import t from 'tap';
import { z } from 'zod';
import { call } from '../../../engine/db/call.ts';
import { functionCall } from '../../../engine/db/function_call.ts';
import { callWith, functionQuery, functionText } from '../../../engine/db/function_text.ts';
import type { FunctionName } from '../../../engine/db/signatures.ts';
import { functionsFile } from '../../../scripts/generate/functions.ts';
import { createTestDatabase } from '../../support/database.ts';

const database = await createTestDatabase(t);
const { owner } = database;
const GENERATED = path.resolve(import.meta.dirname, '../../../engine/db/generated/functions.ts');

t.test('the generated signatures are those of the database: npm run generate makes them anew', async (t) => {
  t.equal(readFileSync(GENERATED, 'utf8'), await functionsFile(owner));
});

t.test(
  'a renamed argument, another type, a default and a new function show; a domain is the type under it',
  async (t) => {
    const client = await owner.connect();
    try {
      await client.query(`begin;
      create domain app.probe_ref as text check (value <> '');
      create domain app.probe_short_ref as app.probe_ref check (length(value) < 9);
      create function app.probe(p_ref app.probe_short_ref, p_refs app.probe_ref[], p_count_us bigint default null)
        returns setof text language sql as 'select p_ref::text';
      grant execute on function app.probe to runner_jobs`);
      const file = await functionsFile(client);
      t.ok(
        file.includes(
          "  probe: {\n    required: { ref: 'text', refs: 'text[]' },\n    optional: { countUs: 'int8' },\n    returnsSet: true,\n  },\n",
        ),
      );
      await client.query(`create function app.hidden_probe(p_ref text) returns text language sql as 'select p_ref';
        revoke all on function app.hidden_probe from public`);
      t.notMatch(await functionsFile(client), /hidden_probe/, 'what no login may call is left out');
      await client.query(`create function app.probe(p_ref text) returns text language sql as 'select p_ref'`);
      await t.rejects(functionsFile(client), { message: 'app.probe has two signatures: a call could mean either' });
      await client.query('drop function app.probe(text); alter function app.probe rename to probe_two');
      await client.query(`create function app.probe(wrong text) returns text language sql as 'select $1';
      grant execute on function app.probe to runner_api`);
      await t.rejects(functionsFile(client), { message: 'app.probe: the argument wrong has no name for TypeScript' });
    } finally {
      await client.query('rollback');
      client.release();
    }
  },
);

t.test('a call has one text, whatever its values and their order are', (t) => {
  const pull = (args: Readonly<{ organizationIds: readonly string[] | null; kinds: readonly string[] | undefined }>) =>
    functionCall('run_requests_pull', { claimSeconds: 30, workerIds: ['w'], profileKeys: null, ...args });
  const text =
    'app.run_requests_pull(p_worker_ids => $slonik_1::"text"[], p_organization_ids => $slonik_2::"uuid"[], ' +
    'p_profile_keys => $slonik_3::"text"[], p_kinds => $slonik_4::"text"[], p_claim_seconds => $slonik_5)';
  const id = '0198c0de-0000-7000-8000-000000000001';
  const some = pull({ organizationIds: [id], kinds: ['chat'] });
  t.match(some, { sql: text, values: [['w'], [id], null, ['chat'], 30] });
  t.match(pull({ kinds: undefined, organizationIds: null }), { sql: text, values: [['w'], null, null, null, 30] });
  const retry = (actor: { kind: string } | null) =>
    functionCall('task_retry', { actor, taskRef: 'T-1', organizationId: id });
  t.equal(retry(null).sql, retry({ kind: 'owner' }).sql, 'null is cast as JSON is');
  t.end();
});

t.test('an argument with a default is left out where nothing is given', (t) => {
  t.equal(functionCall('dispatch_due', { rows: 1 }).sql, 'app.dispatch_due(p_rows => $slonik_1)');
  t.equal(
    functionCall('dispatch_due', { rows: 1, chatStartSeconds: undefined }).sql,
    'app.dispatch_due(p_rows => $slonik_1)',
  );
  t.match(functionCall('dispatch_due', { chatStartSeconds: 5, rows: 1 }), {
    sql: 'app.dispatch_due(p_rows => $slonik_1, p_chat_start_seconds => $slonik_2)',
    values: [1, 5],
  });
  t.equal(functionCall('dispatch_totals', {}).sql, 'app.dispatch_totals()');
  t.end();
});

t.test('an expression stands in the place of a value; what looks like one in JSON stays JSON', (t) => {
  const found = functionCall('task_find', { organizationId: sql.fragment`scope.id`, taskRef: 'T-1' });
  t.match(found, { sql: 'app.task_find(p_organization_id => scope.id, p_task_ref => $slonik_1)', values: ['T-1'] });
  const hostile = { sql: '(select 1)', type: 'SLONIK_TOKEN_FRAGMENT', values: [] };
  const patched = functionCall('organization_update', { organizationId: null, patch: hostile, platform: true });
  t.match(patched.sql, /p_patch => \$slonik_2::jsonb/);
  t.same(patched.values, [null, JSON.stringify(hostile), true]);
  t.end();
});

t.test('values arrive as they are: quotes, nulls in arrays, numbers that JavaScript does not hold', async (t) => {
  const organizationId = randomUUID();
  const name = `O'Neil "&" {a,b} \\ $1`;
  const fields = { slug: `o-${organizationId}`, name };
  const created = z.object({ organization: z.object({ name: z.string() }) });
  const args = { organizationId, fields, subject: null };
  t.same(await call(database.api, 'organization_create', args, created), { organization: { name } });
  const chatIds = [randomUUID(), randomUUID()];
  const heads = z.array(z.looseObject({ chatId: z.string(), closed: z.boolean() }));
  const known = { organizationId, chatIds, messageIds: [null, randomUUID()], revisions: [null, 2] };
  t.match(await call(database.api, 'chat_heads', known, heads), [{ closed: true }, { closed: true }]);
  const search = functionCall('chats_search', {
    organizationId,
    search: '"%',
    status: null,
    lastMessageAtUs: '9007199254740993',
    id: randomUUID(),
    inclusive: false,
    backward: false,
    limit: 1,
  });
  t.same(await database.api.any(sql.type(z.object({}))`select from ${search} c`), []);
});

t.test('the driver takes the same functions: as a query, and as text around expressions', async (t) => {
  t.same(functionQuery('task_retry', { organizationId: 'o', taskRef: 'T-1', actor: { kind: 'owner' } }), {
    text: 'select app.task_retry(p_organization_id => $1, p_task_ref => $2, p_actor => $3) as result',
    values: ['o', 'T-1', '{"kind":"owner"}'],
  });
  t.equal(
    functionText('dispatch_due', { rows: '2 * $1', chatStartSeconds: '0' }),
    'app.dispatch_due(p_rows => 2 * $1, p_chat_start_seconds => 0)',
  );
  t.match(await callWith(owner, 'dispatch_totals', {}), { task: { ready: 0, held: 0 } });
});

t.test('what is no function of ours is refused before it is sent', (t) => {
  t.throws(() => functionCall('task_settle' as FunctionName, {} as never), { message: 'no function task_settle' });
  t.throws(() => functionCall('toString' as FunctionName, {} as never), TypeError);
  t.end();
});
