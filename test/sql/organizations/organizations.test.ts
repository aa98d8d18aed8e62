import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  checkLease,
  claimNext,
  completeRun,
  createInitiative,
  createOrganization,
  createTask,
  createTestOrganization,
  heartbeat,
  pull,
  runNew,
  startRun,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { createTenant } from '../../support/tenant.ts';
import { type Answer, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };
const gone = { status: 404, code: 'organization_not_found' };

function create(organizationId: string, fields: Answer, subject: string | null = null) {
  return transition(sql.api, 'organization_create', {
    p_organization_id: organizationId,
    p_fields: { name: 'Acme', ...fields },
    p_subject: subject,
  });
}

function remove(organizationId: string) {
  return transition(sql.api, 'organization_delete', { p_organization_id: organizationId });
}

function purge(organizationId: string, limit = 1000, forget = true) {
  return transition(sql.jobs, 'organization_purge', {
    p_organization_id: organizationId,
    p_limit: limit,
    p_forget: forget,
  });
}

function member(verb: 'put' | 'delete', organizationId: string, subject: string, role?: string) {
  const args = { p_organization_id: organizationId, p_subject: subject };
  return transition(sql.api, `organization_member_${verb}`, verb === 'put' ? { ...args, p_role: role } : args);
}

async function list(subject: string | null): Promise<string[]> {
  const { rows } = await sql.api.query(
    'select id from app.organizations_list($1, null, null, null, false, false, 200)',
    [subject],
  );
  return rows.map((row) => String(row.id));
}

scenario('an organization is made with defaults for what nobody said', async (test) => {
  const id = randomUUID();
  const { organization } = await create(id, { slug: `acme-${id}`, config: { limits: { maxConcurrentRuns: 9 } } });
  test.match(organization, {
    id,
    status: 'active',
    authorization_epoch: 1,
    root_uri: `org://${id}`,
    config: {
      timezone: 'UTC',
      departments: { growth: { enabled: true } },
      limits: { maxConcurrentRuns: 9, maxDailyActions: 100, maxTaskDepth: 5 },
      storageRootUri: `org://${id}/storage`,
    },
    constraints: { allowedIntegrations: [], approvalRequiredForRisk: ['external', 'high'] },
  });
  const { rows } = await sql.owner.query(
    'select kind, capacity from app.dispatch where organization_id = $1 order by kind',
    [id],
  );
  test.same(rows, [
    { kind: 'chat', capacity: 20 },
    { kind: 'task', capacity: 9 },
  ]);
});

scenario('an id and a slug are given once, also to two at once', async (test) => {
  const [id, slug] = [randomUUID(), `s-${randomUUID()}`];
  await create(id, { slug });
  test.match(await refusal(create(id, { slug: `other-${id}` })), { ...conflict, reason: 'in_use' });
  test.match(await refusal(create(randomUUID(), { slug })), { status: 409, code: 'request_failed', reason: 'in_use' });
  const twin = `twin-${randomUUID()}`;
  const both = await Promise.allSettled([create(randomUUID(), { slug: twin }), create(randomUUID(), { slug: twin })]);
  test.same(both.map((one) => one.status).sort(), ['fulfilled', 'rejected']);
});

scenario('a patch changes what it names; what it removes has its default again', async (test) => {
  const organizationId = await createOrganization(sql, { limits: { maxTaskDepth: 9 } });
  const answer = await updateOrganization(
    sql.api,
    { organizationId },
    { name: 'New', config: { timezone: 'Europe/Berlin' } },
  );
  test.match(answer, {
    organization: { name: 'New', config: { timezone: 'Europe/Berlin', limits: { maxTaskDepth: 9 } } },
  });
  test.match(await updateOrganization(sql.api, { organizationId }, { config: { limits: null } }), {
    organization: { config: { timezone: 'Europe/Berlin', limits: { maxTaskDepth: 5 } } },
  });
  const other = await createOrganization(sql, { slug: `taken-${organizationId}` });
  test.match(await refusal(updateOrganization(sql.api, { organizationId }, { slug: `taken-${organizationId}` })), {
    status: 409,
    code: 'request_failed',
  });
  test.match(await refusal(updateOrganization(sql.api, { organizationId: randomUUID() }, {})), gone);
  test.not(other, organizationId);
});

scenario('the authorization epoch only rises, and rises with the constraints', async (test) => {
  const organizationId = await createOrganization(sql);
  const patch = (fields: Answer) => updateOrganization(sql.api, { organizationId }, fields);
  test.match(await patch({ authorizationEpoch: 5 }), { organization: { authorization_epoch: 5 } });
  test.match(await refusal(patch({ authorizationEpoch: 4 })), { ...conflict, reason: 'lowered' });
  test.match(await patch({ constraints: { blockedDomains: ['x.example'] } }), {
    organization: { authorization_epoch: 6 },
  });
  test.match(await patch({ constraints: { blockedDomains: ['x.example'] } }), {
    organization: { authorization_epoch: 6 },
  });
  test.match(await patch({ constraints: { blockedDomains: [] }, authorizationEpoch: 6 }), {
    organization: { authorization_epoch: 7 },
  });
  test.match(await patch({ name: 'Other' }), { organization: { authorization_epoch: 7 } });
});

scenario('only the platform suspends, and lifts it', async (test) => {
  const org = await createTestOrganization(sql);
  const forbidden = { status: 403, code: 'forbidden' };
  test.match(await refusal(updateOrganization(sql.api, org, { status: 'suspended' }, false)), forbidden);
  const subject = randomUUID();
  test.match(await refusal(create(randomUUID(), { slug: `s-${subject}`, status: 'suspended' }, subject)), forbidden);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await refusal(updateOrganization(sql.api, org, { status: 'active' }, false)), forbidden);
  test.match(await refusal(updateOrganization(sql.api, org, { status: 'onboarding' })), {
    ...conflict,
    reason: 'no_onboarding',
  });
  await updateOrganization(sql.api, org, { status: 'active' });
  const made = randomUUID();
  await create(made, { slug: `s-${made}`, status: 'onboarding' });
  test.match(await updateOrganization(sql.api, { organizationId: made }, { status: 'active' }, false), {
    organization: { status: 'active' },
  });
});

scenario('a suspended organization hands out nothing, its claims end, and its runs may finish', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await createTask(sql, org);
  const claim = await claimNext(sql, org);
  await createTask(sql, org);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.same(await pull(sql.api, { organizationIds: [org.organizationId], limit: 9 }), []);
  test.match(await refusal(startRun(sql.api, claim)), { status: 409, code: 'run_lease_expired' });
  test.same(await heartbeat(sql.api, run), { status: 'starting' });
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
  await updateOrganization(sql.api, org, { status: 'active' });
  test.equal((await pull(sql.api, { organizationIds: [org.organizationId], limit: 9 })).length, 2);
});

scenario('an organization that is deleted is gone at once, and its slug is free', async (test) => {
  const org = await createTestOrganization(sql);
  const slug = `free-${org.organizationId}`;
  await updateOrganization(sql.api, org, { slug });
  const run = await runNew(sql, org);
  await createTask(sql, org);
  await claimNext(sql, org);
  await createTask(sql, org);
  await remove(org.organizationId);
  test.match(await refusal(remove(org.organizationId)), gone, 'once');
  test.match(await refusal(updateOrganization(sql.api, org, { name: 'x' })), gone);
  test.match(await refusal(member('put', org.organizationId, 's', 'owner')), gone);
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
  for (const call of [heartbeat, completeRun, checkLease]) {
    test.match(await refusal(call(sql.api, run)), { status: 409, reason: 'lease_lost' });
  }
  test.notOk((await list(null)).includes(org.organizationId));
  const { rows } = await sql.owner.query(
    `select task_identifier, max_attempts from graphile_worker.jobs where key = 'organizations__delete:' || $1`,
    [org.organizationId],
  );
  test.match(rows, [{ task_identifier: 'organizations__delete' }], 'and a job removes the rest');
  await create(randomUUID(), { slug });
  test.match(await refusal(create(org.organizationId, { slug: `again-${slug}` })), { ...conflict, reason: 'in_use' });
});

scenario(
  'a purge removes every row of the deleted organization in small steps, and no row of another',
  async (test) => {
    const org = await createTenant(sql);
    const other = await createTenant(sql);
    for (const at of [org, other]) {
      const { root } = await createInitiative(sql, at, ['one', 'two']);
      const inner = await createTask(sql, at, { kind: 'initiative', parentId: root });
      await createTask(sql, at, { parentId: inner.id });
    }
    const count = async (organizationId: string) => {
      const { rows: tables } = await sql.owner.query<{ name: string }>(
        `select attrelid::regclass::text as name from pg_attribute a join pg_class c on c.oid = a.attrelid
       where attname = 'organization_id' and c.relnamespace = 'app'::regnamespace and c.relkind = 'r'`,
      );
      const counts: Record<string, number> = {};
      for (const { name } of tables) {
        const { rows } = await sql.owner.query(`select count(*)::int as n from ${name} where organization_id = $1`, [
          organizationId,
        ]);
        counts[name] = rows[0].n;
      }
      return counts;
    };
    const before = await count(org.organizationId);
    for (const [table, rows] of Object.entries(before)) test.ok(rows > 0, `there are rows in ${table}`);
    const kept = await count(other.organizationId);
    test.match(await refusal(purge(org.organizationId)), conflict, 'not before it is deleted');
    test.same(await count(org.organizationId), before);
    await remove(org.organizationId);
    let steps = 0;
    for (; (await purge(org.organizationId, 1))['done'] === false; steps += 1) test.ok(steps < 200);
    test.ok(steps >= 20, 'row by row, as it was asked');
    for (const [table, rows] of Object.entries(await count(org.organizationId))) test.equal(rows, 0, table);
    test.same(await count(other.organizationId), kept);
    test.match(await purge(org.organizationId), { done: true, gone: true }, 'again');
    await create(org.organizationId, { slug: `new-${org.organizationId}` });
  },
);

scenario('the row of a deleted organization stays until it may be forgotten', async (test) => {
  const org = await createTestOrganization(sql);
  await remove(org.organizationId);
  test.match(await purge(org.organizationId, 100, false), { done: true, gone: false });
  test.match(await refusal(create(org.organizationId, { slug: 'new' })), conflict);
  test.match(await purge(org.organizationId, 100, true), { done: true, gone: true });
});

scenario('whoever makes an organization owns it, and the last owner stays', async (test) => {
  const [organizationId, me, you] = [randomUUID(), `me-${randomUUID()}`, `you-${randomUUID()}`];
  await create(organizationId, { slug: `s-${organizationId}` }, me);
  test.match(await refusal(member('delete', organizationId, me)), conflict);
  test.match(await refusal(member('put', organizationId, me, 'viewer')), conflict);
  test.match(await member('put', organizationId, you, 'viewer'), { member: { subject: you, role: 'viewer' } });
  test.match(await refusal(member('delete', organizationId, me)), conflict, 'a viewer is no owner');
  await member('put', organizationId, you, 'owner');
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await one.query(`select app.organization_member_put($1, $2, 'viewer')`, [organizationId, me]);
  const late = refusal(
    transition(two, 'organization_member_put', { p_organization_id: organizationId, p_subject: you, p_role: 'viewer' }),
  );
  await two.waits();
  await one.commit();
  test.match(await late, conflict, 'two who step down at once do not both');
  await member('delete', organizationId, me);
  test.match(await refusal(member('delete', organizationId, me)), { status: 404, code: 'not_found' });
});

scenario('the list shows a member its own organizations, an operator all', async (test) => {
  const subject = `s-${randomUUID()}`;
  const own = randomUUID();
  await create(own, { slug: `s-${own}` }, subject);
  const other = await createOrganization(sql);
  test.same(await list(subject), [own]);
  const all = await list(null);
  test.ok(all.includes(own) && all.includes(other));
  await remove(own);
  test.same(await list(subject), []);
});
