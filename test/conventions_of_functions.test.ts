import { globSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { declaredAccess } from '../engine/db/schema/access.ts';
import { FUNCTIONS, rulesOf, SQL_FOLDER } from './support/catalog_rules.ts';
import { openSql } from './support/transitions.ts';

const sql = await openSql(t);
const breaking = rulesOf(sql);
const { access } = await declaredAccess(SQL_FOLDER, 'functions');
const { access: triggerAccess } = await declaredAccess(SQL_FOLDER, 'triggers');
const functionFiles = globSync('functions/**/*.sql', { cwd: SQL_FOLDER });
const triggerFiles = globSync('triggers/**/*.sql', { cwd: SQL_FOLDER });

t.test('every function has its search path, save for those that take less time than setting it', async (test) => {
  const broken = await breaking(
    `select p.proname from ${FUNCTIONS} and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] order by 1`,
  );
  test.same(
    broken.map((row) => (row as { proname: string }).proname),
    [
      'current_organization',
      'messages_check',
      'report_shows',
      'run_logs_check',
      'run_requests_check',
      'run_requests_counts',
      'runs_check',
      'task_exceeds_budget',
      'tasks_blockers',
      'tasks_check',
      'uuid_v7',
    ],
  );
});

t.test('functions belong to the roles that limit them', async (test) => {
  const { rows } = await sql.owner.query<{ name: string; owner: string; definer: boolean }>(
    `select p.proname as name, p.proowner::regrole::text as owner, p.prosecdef as definer from ${FUNCTIONS} order by 1`,
  );
  test.same(
    rows.filter((row) => row.owner === 'runner_global').map((row) => row.name),
    [
      'action_invocations_due',
      'actions_due',
      'admin_catalog_publish',
      'agent_catalog_publish',
      'agent_catalog_publish_if_none',
      'analyst_grant',
      'analyst_revoke',
      'analysts_list',
      'chats_expired',
      'chats_search',
      'context_health_due',
      'currency_rate_read',
      'currency_rates_claim',
      'currency_rates_fail',
      'currency_rates_store',
      'dispatch_due',
      'dispatch_totals',
      'human_inbox_open_counts',
      'idempotency_keys_clean',
      'insight_compactions_due',
      'insight_expiries_due',
      'insight_sweeps_due',
      'insight_totals',
      'insight_units_clean',
      'insights_due',
      'integration_capability_find',
      'integration_flows_clean',
      'integration_grant_delete',
      'integration_oauth_find',
      'integration_secrets_by_key',
      'integration_secrets_to_rewrap',
      'integrations_due',
      'message_chunks_due',
      'organization_slug_free',
      'organizations_deleted',
      'organizations_list',
      'rate_limit_buckets_clean',
      'rate_limit_hold',
      'rate_limit_take',
      'run_requests_pull',
      'tokens_held',
    ],
    'those that see every tenant are these',
  );
  test.same(
    rows.filter((row) => row.owner === 'runner_owner').map((row) => row.name),
    [
      'agent_catalogs_keep',
      'agent_profiles_wake',
      'audit_entries_keep',
      'chats_wake',
      'context_rows_keep',
      'context_sources_keep',
      'current_organization',
      'dispatch_wake',
      'human_inbox_items_mark_run',
      'insight_connectors_wake',
      'integration_connections_raise_epoch',
      'integration_tools_raise_epoch',
      'integrations_raise_epoch',
      'messages_check',
      'messages_keep_revision',
      'messages_wake',
      'report_shows',
      'rule_refuse',
      'run_logs_check',
      'run_requests_check',
      'run_requests_counts',
      'run_requests_wake',
      'run_requests_wake_stop',
      'runs_check',
      'search_fold',
      'search_grams',
      'tasks_check',
      'tasks_raise_version',
      'tasks_track_spend',
      'uuid_v7',
    ],
    'the owner of the tables owns no function that runs with its rights',
  );
  test.same(
    rows.filter((row) => row.definer && row.owner === 'runner_owner'),
    [],
  );
  test.same(
    rows
      .filter((row) => !['runner_scoped', 'runner_global', 'runner_owner'].includes(row.owner))
      .map((row) => row.name),
    ['enqueue', 'timezone_or_utc'],
    'and the migrating login owns the way into the job queue alone, runner_report what its views call',
  );
});

for (const [folder, files] of Object.entries({ functions: functionFiles, triggers: triggerFiles })) {
  const declared = folder === 'functions' ? access : triggerAccess;

  t.test(`${folder}/access.json names each function once, below its folder, in order`, async (test) => {
    const owned = Object.values(declared.owners).flat();
    test.same(owned, [...new Set(owned)], 'a function has one owner');
    for (const names of Object.values(declared.owners)) test.same(names, names.toSorted());
    for (const [role, nouns] of Object.entries(declared.execute)) {
      test.same(Object.keys(nouns), Object.keys(nouns).toSorted(), role);
      for (const [noun, names] of Object.entries(nouns)) {
        test.same(names, [...new Set(names)].toSorted(), `${role}, ${noun}`);
        for (const name of names) test.ok(files.includes(`${folder}/${noun}/${name}.sql`), `${name} is in ${noun}`);
      }
    }
  });

  t.test(`the catalog has the owners and the rights that ${folder}/access.json declares`, async (test) => {
    const { rows } = await sql.owner.query<{ name: string; owner: string; executes: string[] }>(
      `select p.proname as name, p.proowner::regrole::text as owner,
         array(select case a.grantee when 0 then 'public' else a.grantee::regrole::text end
           from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee <> p.proowner order by 1)
           as executes
       from ${FUNCTIONS} and p.proname = any ($1) order by 1`,
      [files.map((file) => path.basename(file, '.sql'))],
    );
    test.equal(rows.length, files.length);
    const executes = (name: string) =>
      Object.entries(declared.execute)
        .filter(([, nouns]) => Object.values(nouns).flat().includes(name))
        .map(([role]) => role);
    const ownerOf = (name: string) =>
      Object.entries(declared.owners).find(([, names]) => names.includes(name))?.[0] ?? declared.defaultOwner;
    for (const { name, ...found } of rows) {
      const owner = ownerOf(name) === 'migrating_login' ? 'postgres' : ownerOf(name);
      test.same(found, { owner, executes: executes(name).toSorted() }, name);
    }
  });
}

t.test('the functions of triggers, and no others, are in triggers/', async (test) => {
  const { rows } = await sql.owner.query<{ name: string }>(
    `select p.proname as name from ${FUNCTIONS} and p.prorettype = 'trigger'::regtype order by 1`,
  );
  test.same(
    rows.map(({ name }) => name),
    triggerFiles.map((file) => path.basename(file, '.sql')).toSorted(),
  );
});

t.test('a tenant’s transition sets its tenant before anything else', async (test) => {
  const { rows } = await sql.owner.query<{ name: string; body: string; arguments: string }>(
    `select p.proname as name, p.prosrc as body, pg_get_function_arguments(p.oid) as arguments
     from ${FUNCTIONS} and p.prosecdef and p.proowner = 'runner_scoped'::regrole and p.prorettype <> 'trigger'::regtype`,
  );
  test.ok(rows.length > 25);
  for (const { name, body, arguments: list } of rows) {
    test.match(list, /^p_organization_id uuid/, name);
    test.match(
      body,
      /^\s*declare\s+v_tenant constant text := set_config\('app\.organization_id', p_organization_id::text, true\);/,
      name,
    );
  }
});

t.test('parameters are named p_…, save for rows', async (test) => {
  const broken = await breaking(
    `select p.proname, n.name from pg_proc p
     cross join lateral unnest(p.proargnames, p.proargmodes, coalesce(p.proallargtypes, p.proargtypes::oid[]))
       n(name, mode, type)
     join pg_type y on y.oid = n.type
     where p.pronamespace = 'app'::regnamespace and coalesce(n.mode, 'i') in ('i', 'b') and y.typtype <> 'c'
       and n.name !~ '^p_'`,
  );
  test.same(broken, []);
});
