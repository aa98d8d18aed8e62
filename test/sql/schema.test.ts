import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { describeSchema } from '../../scripts/generate/schema/describe.ts';
import { SQL_FOLDER } from '../support/catalog_rules.ts';
import { openSql } from '../support/transitions.ts';

const sql = await openSql(t);
const written = readFileSync(path.join(SQL_FOLDER, 'schema.sql'), 'utf8');

async function described(): Promise<string> {
  const client = await sql.owner.connect();
  try {
    return await describeSchema(client);
  } finally {
    client.release();
  }
}

/** The lines of the description that the file does not have. */
async function drift(): Promise<string[]> {
  const known = new Set(written.split('\n'));
  return (await described()).split('\n').filter((line) => !known.has(line));
}

t.test('sql/schema.sql describes the database: npm run generate makes it anew', async (test) => {
  test.equal(await described(), written);
});

t.test('it has a line for every column, with its meaning', (test) => {
  const page = /^CREATE TABLE app\.tasks \(\n([\s\S]*?)^\)/m.exec(written)?.[1] ?? '';
  const columns = page.split('\n').filter((line) => /^ {2}[a-z]/.test(line));
  test.ok(columns.length > 40);
  for (const column of columns) test.match(column, / {2}-- \S/);
  test.match(written, /^-- when not .* then 'tasks_title_check'$/m, 'rules that are one function are there too');
  test.end();
});

const BY_HAND: Readonly<Record<string, readonly [string, RegExp]>> = {
  'a column': ['alter table app.tasks add column mood text', /^ {2}mood text,$/],
  'a comment': [`comment on column app.tasks.mood is 'How it feels.'`, /^ {2}mood text, +-- How it feels\.$/],
  'a default': [`alter table app.tasks alter column mood set default 'good'`, /^ {2}mood text DEFAULT 'good'/],
  'a constraint': [
    'alter table app.tasks add constraint tasks_mood_check check (length(mood) < 9)',
    /CONSTRAINT tasks_mood_check CHECK/,
  ],
  'an index': ['create index tasks_mood_idx on app.tasks (organization_id, mood)', /CREATE INDEX tasks_mood_idx/],
  'a policy': [
    'create policy mood_read on app.tasks for select to runner_jobs using (true)',
    /CREATE POLICY mood_read/,
  ],
  'a right': ['grant truncate on app.tasks to runner_scoped', /GRANT .*TRUNCATE ON app\.tasks TO runner_scoped/],
  'a storage parameter': ['alter table app.tasks set (fillfactor = 71)', /WITH \(.*fillfactor=71/],
  'a value of a state': [
    `alter domain app.run_mode drop constraint run_mode_check;
     alter domain app.run_mode add constraint run_mode_check check (value in ('plan', 'execute', 'verify', 'rest'))`,
    /CREATE DOMAIN app\.run_mode .*'rest'/,
  ],
  'who executes a function': ['grant execute on function app.tasks_blockers to runner_jobs', /runner_jobs/],
};

t.test('what is changed by hand is seen', async (test) => {
  let before = await drift();
  test.same(before, []);
  for (const [what, [change, line]] of Object.entries(BY_HAND)) {
    await sql.owner.query(change);
    const now = await drift();
    const seen = now.filter((found) => !before.includes(found));
    test.ok(
      seen.some((found) => line.test(found)),
      `${what}: ${seen.join('\n')}`,
    );
    before = now;
  }
});
