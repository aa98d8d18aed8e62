import t from 'tap';
import { migrate } from '../../../../engine/db/migrate.ts';
import { AnalystError, addAnalyst, listAnalysts, removeAnalyst } from '../../../../scripts/analyst/logins.ts';
import { scramVerifier } from '../../../../scripts/analyst/password.ts';
import { analystName, ask, connected, createAnalyst, loginUrl, openReporting } from '../../../support/analysts.ts';
import { createEmptyDatabase } from '../../../support/database.ts';
import { createTestOrganization } from '../../../support/fixtures.ts';
import { refusal, transition } from '../../../support/transitions.ts';

const sql = await openReporting(t);
const acme = await createTestOrganization(sql);
const beta = await createTestOrganization(sql);

const seen = async (url: string) =>
  (await ask(url, 'select organization_id from organizations order by 1')).out.trim().split('\n').filter(Boolean);
const sorted = (...ids: string[]) => [...ids].sort();

t.test('a login reads the organizations that it was given, and more once it is given more', async (test) => {
  const analyst = await createAnalyst(test, sql, { organizationIds: [acme.organizationId] });
  test.same(await seen(analyst.url), [acme.organizationId]);
  const again = await connected(sql.url, (client) =>
    addAnalyst(client, analyst.name, { all: false, organizationIds: [beta.organizationId] }, () =>
      test.fail('no new password'),
    ),
  );
  test.match(again, { password: undefined, granted: { all: false } });
  test.same(again.granted.organizationIds, sorted(acme.organizationId, beta.organizationId));
  test.same(await seen(analyst.url), sorted(acme.organizationId, beta.organizationId), 'its password is the old one');
  const repeated = await connected(sql.url, (client) =>
    addAnalyst(client, analyst.name, { all: false, organizationIds: [beta.organizationId] }, () => {}),
  );
  test.same(repeated.granted, again.granted);
});

t.test('a login for all reads organizations that are made later, and none that is deleted', async (test) => {
  const analyst = await createAnalyst(test, sql, { all: true });
  const later = await createTestOrganization(sql);
  test.ok((await seen(analyst.url)).includes(later.organizationId));
  await transition(sql.api, 'organization_delete', { organizationId: later.organizationId });
  test.notOk((await seen(analyst.url)).includes(later.organizationId));
  const left = await ask(
    analyst.url,
    `select count(*) from agent_profiles where organization_id = '${later.organizationId}'`,
  );
  test.equal(left.out.trim(), '0', 'nor its rows, which are removed later');
});

t.test('the login is bounded, and its password is known to nobody else', async (test) => {
  const analyst = await createAnalyst(test, sql, { organizationIds: [acme.organizationId] });
  const { rows } = await sql.owner.query(
    `select rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolconnlimit, rolpassword,
       (select array_agg(roleid::regrole::text) from pg_auth_members where member = a.oid) as member
     from pg_authid a where rolname = $1`,
    [analyst.name],
  );
  const { rolpassword: stored, ...role } = rows[0];
  test.same(role, {
    rolcanlogin: true,
    rolsuper: false,
    rolcreatedb: false,
    rolcreaterole: false,
    rolreplication: false,
    rolbypassrls: false,
    rolconnlimit: 4,
    member: ['runner_analyst'],
  });
  const salt = Buffer.from(/:(.*?)\$/.exec(stored)?.[1] ?? '', 'base64');
  test.equal(stored, scramVerifier(analyst.password, salt), 'stored as SCRAM');
  test.match(analyst.password, /^[\w-]{43}$/);
  const settings = await ask(
    analyst.url,
    [
      'statement_timeout',
      'temp_file_limit',
      'idle_in_transaction_session_timeout',
      'default_transaction_read_only',
      'search_path',
    ]
      .map((name) => `show ${name};`)
      .join('\n'),
  );
  test.same(settings.out.trim().split('\n'), ['1min', '1GB', '1min', 'on', 'reporting']);
  test.match(await ask(loginUrl(sql.url, analyst.name, 'wrong'), 'select 1'), { code: /./ });
});

t.test('more sessions than the login has are refused', async (test) => {
  const analyst = await createAnalyst(test, sql, { organizationIds: [acme.organizationId] });
  await connected(analyst.url, () =>
    connected(analyst.url, () =>
      connected(analyst.url, () =>
        connected(analyst.url, async () => {
          test.match(await ask(analyst.url, 'select 1'), { code: /./, said: /too many connections for role/ });
        }),
      ),
    ),
  );
});

t.test('removing ends the sessions of the login, and leaves nothing of it', async (test) => {
  const name = analystName();
  const added = await connected(sql.url, (client) =>
    addAnalyst(client, name, { all: true, organizationIds: [] }, () => {}),
  );
  const url = loginUrl(sql.url, name, added.password ?? '');
  await connected(url, async (session) => {
    await session.query('begin');
    test.ok((await session.query('select from organizations')).rowCount);
    test.equal(await connected(sql.url, (client) => removeAnalyst(client, name)), 1);
    await test.rejects(session.query('select from organizations'));
  });
  test.match(await ask(url, 'select 1'), { code: /./ });
  test.notOk((await connected(sql.url, listAnalysts)).some(({ login }) => login === name));
  await test.rejects(
    connected(sql.url, (client) => removeAnalyst(client, name)),
    new AnalystError(`there is no analyst ${name}`),
  );
});

t.test('what a login left in another database keeps it from being dropped, and is told', async (test) => {
  const other = await createEmptyDatabase(test);
  const name = analystName();
  const add = () =>
    connected(sql.url, (client) => addAnalyst(client, name, { all: true, organizationIds: [] }, () => {}));
  const remove = () => connected(sql.url, (client) => removeAnalyst(client, name));
  const { password = '' } = await add();
  await connected(loginUrl(other.url, name, password), async (session) => {
    await session.query('set default_transaction_read_only = off');
    await session.query('select lo_create(0)');
  });
  await test.rejects(remove(), { name: 'AnalystError', message: /left 1 object in database test_\w+: drop owned by/ });
  test.match(await ask(loginUrl(sql.url, name, password), 'select 1'), { code: /./ });
  await test.rejects(add(), { name: 'AnalystError', message: /has not come to its end/ });
  await connected(other.url, (client) => client.query(`drop owned by ${name}`));
  test.equal(await remove(), 0);
});

t.test('a login that somebody dropped by hand passes nothing on to the next one of its name', async (test) => {
  const name = analystName();
  await connected(sql.url, (client) => addAnalyst(client, name, { all: true, organizationIds: [] }, () => {}));
  await sql.owner.query(`drop role ${name}`);
  test.match(
    (await connected(sql.url, listAnalysts)).find(({ login }) => login === name),
    { gone: true },
  );
  const added = await connected(sql.url, (client) =>
    addAnalyst(client, name, { all: false, organizationIds: [beta.organizationId] }, () => {}),
  );
  test.teardown(() => connected(sql.url, (client) => removeAnalyst(client, name)));
  test.same(added.granted, { login: name, all: false, organizationIds: [beta.organizationId] });
  test.same(await seen(loginUrl(sql.url, name, added.password ?? '')), [beta.organizationId]);
});

t.test('what another database of the server removed is nobody’s, whoever gets its name', async (test) => {
  const elsewhere = await openReporting(test);
  const [old, later] = [await createTestOrganization(elsewhere), await createTestOrganization(elsewhere)];
  const name = analystName();
  const add = (url: string, ...organizationIds: string[]) =>
    connected(url, (client) => addAnalyst(client, name, { all: false, organizationIds }, () => {}));
  const remove = (url: string) => connected(url, (client) => removeAnalyst(client, name));
  const listed = async () =>
    (await connected(elsewhere.url, listAnalysts)).find(({ login }) => login === name)?.gone ?? 'not there';
  const { password: first = '' } = await add(sql.url, acme.organizationId);
  await add(elsewhere.url, old.organizationId);
  test.same(await seen(loginUrl(elsewhere.url, name, first)), [old.organizationId]);
  test.equal(await listed(), false);
  await remove(sql.url);
  test.equal(await listed(), true);

  const { password = '' } = await add(sql.url, acme.organizationId);
  test.teardown(() => remove(sql.url));
  const url = loginUrl(elsewhere.url, name, password);
  test.same(await seen(url), [], 'the next one reads nothing of it');
  test.equal(await listed(), true);
  test.equal(await remove(elsewhere.url), undefined);
  test.equal(await listed(), 'not there');
  test.same(await seen(loginUrl(sql.url, name, password)), [acme.organizationId], 'and is not removed with it');

  await add(elsewhere.url, old.organizationId);
  await remove(sql.url);
  const { password: third = '' } = await add(sql.url, acme.organizationId);
  const { granted } = await add(elsewhere.url, later.organizationId);
  test.same(granted.organizationIds, [later.organizationId], 'nor is what it is given there added to that');
  test.same(await seen(loginUrl(elsewhere.url, name, third)), [later.organizationId]);
});

t.test('names of roles that are no analysts, and what is no name, are refused and change nothing', async (test) => {
  const add = (name: string) =>
    connected(sql.url, (client) => addAnalyst(client, name, { all: true, organizationIds: [] }, () => {}));
  for (const name of [
    'postgres',
    'runner_owner',
    'pg_monitor',
    'public',
    'A',
    'a-b',
    'x"; drop role y',
    'a'.repeat(64),
    '',
  ]) {
    await test.rejects(add(name), AnalystError, name);
    await test.rejects(
      connected(sql.url, (client) => removeAnalyst(client, name)),
      AnalystError,
      name,
    );
  }
  const { rows } = await sql.owner.query(`select login from app.analysts where login in ('postgres', 'public')`);
  test.same(rows, []);
});

t.test('an organization that is not there makes no login', async (test) => {
  const name = analystName();
  await test.rejects(
    connected(sql.url, (client) =>
      addAnalyst(client, name, { all: false, organizationIds: ['00000000-0000-4000-8000-000000000000'] }, () => {}),
    ),
    { code: 'RN404' },
  );
  test.same((await sql.owner.query('select from pg_roles where rolname = $1', [name])).rows, []);
});

t.test('two that add the same login at once make one', async (test) => {
  const name = analystName();
  test.teardown(() => connected(sql.url, (client) => removeAnalyst(client, name)));
  const add = () =>
    connected(sql.url, (client) => addAnalyst(client, name, { all: true, organizationIds: [] }, () => {}));
  const results = await Promise.allSettled([add(), add()]);
  const made = results.filter((result) => result.status === 'fulfilled' && result.value.password !== undefined);
  test.equal(made.length, 1);
});

t.test('an analyst who keeps a transaction open holds up no migration', async (test) => {
  const analyst = await createAnalyst(test, sql, { organizationIds: [acme.organizationId] });
  await connected(analyst.url, async (session) => {
    await session.query('set statement_timeout = 0; set idle_in_transaction_session_timeout = 0');
    await session.query('begin; select from reporting.runs');
    // A view that is gone is made anew with all others.
    await sql.owner.query('drop view reporting.onboarding');
    const told: string[] = [];
    test.match(await migrate(sql.url, { log: (line) => told.push(line) }), { views: true });
    test.ok(told.includes(`ended a session of the analyst ${analyst.name}, which held up the migration`));
    await test.rejects(session.query('select'));
  });
});

t.test('the grants of a login are given and taken by operators alone', async (test) => {
  for (const pool of [sql.api, sql.jobs]) {
    const everything = { login: 'a', organizationIds: [], all: true, fresh: false };
    await test.rejects(transition(pool, 'analyst_grant', everything), { code: '42501' });
    await test.rejects(transition(pool, 'analyst_revoke', { login: 'a' }), { code: '42501' });
    await test.rejects(transition(pool, 'analysts_list', {}), { code: '42501' });
  }
  const given = { login: 'someone', organizationIds: [acme.organizationId], all: false, fresh: false };
  await transition(sql.owner, 'analyst_grant', given);
  const unknown = { ...given, organizationIds: [beta.organizationId, '00000000-0000-4000-8000-000000000000'] };
  test.match(await refusal(transition(sql.owner, 'analyst_grant', unknown)), {
    status: 404,
    code: 'organization_not_found',
  });
  const all = await transition(sql.owner, 'analyst_grant', { ...given, organizationIds: [], all: true });
  test.same(all, { login: 'someone', all: true, organizationIds: [acme.organizationId] });
  test.match(await transition(sql.owner, 'analyst_grant', given), { all: true }, 'a grant takes nothing away');
  test.match(await transition(sql.owner, 'analyst_grant', { ...given, fresh: true }), { all: false });
  const revoked = await Promise.all([0, 1].map(() => transition(sql.owner, 'analyst_revoke', { login: 'someone' })));
  test.same(revoked.map(({ revoked: one }) => one).sort(), [false, true]);
});
