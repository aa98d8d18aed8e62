import { randomUUID } from 'node:crypto';
import t from 'tap';
import { capability, createTestOrganization, OWNER, SERVICE, updateOrganization } from '../../support/fixtures.ts';
import { type JsonObject, openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);

/** Every transition that takes an actor, as a call that gives the organization and the actor, and nothing else. */
const { rows: transitions } = await sql.owner.query<{ name: string; call: string }>(
  `select p.proname as name, format('select app.%I(%s)', p.proname, string_agg(
     format('%I => %s', a.name, case a.name when 'p_organization_id' then '$1' when 'p_actor' then '$2' else 'null' end),
     ', ' order by a.place)) as call
   from pg_proc p cross join unnest(p.proargnames) with ordinality a(name, place)
   where p.pronamespace = 'app'::regnamespace and p.prosecdef and 'p_actor' = any (p.proargnames)
     and p.proname <> 'audit_append'
   group by p.oid order by 1`,
);

/** The code of the refusal where it is ours, otherwise the message. */
async function outcome(call: string, organizationId: string, actor: JsonObject): Promise<string> {
  const failed = await sql.api.query(call, [organizationId, JSON.stringify(actor)]).catch((error: unknown) => error);
  if (!(failed instanceof Error)) return 'no refusal';
  const { detail } = failed as { detail?: string };
  return detail ?? failed.message;
}

t.test('every transition that takes an actor looks at it, by itself', async (test) => {
  const { organizationId } = await createTestOrganization(sql);
  const suspended = await createTestOrganization(sql);
  await updateOrganization(sql.api, suspended, { status: 'suspended' });
  const deleted = await createTestOrganization(sql);
  await transition(sql.api, 'organization_delete', { organizationId: deleted.organizationId });
  test.ok(transitions.length > 20);
  for (const { name, call } of transitions) {
    test.equal(await outcome(call, organizationId, capability(randomUUID())), 'agent_unauthorized', name);
    test.equal(await outcome(call, organizationId, { kind: 'nobody' }), 'unknown actor nobody', name);
    test.equal(await outcome(call, suspended.organizationId, SERVICE), 'state_conflict', `${name}, suspended`);
    test.equal(await outcome(call, deleted.organizationId, OWNER), 'organization_not_found', `${name}, deleted`);
  }
});
