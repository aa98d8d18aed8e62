import { sql as slonik } from 'slonik';
import t from 'tap';
import { z } from 'zod';
import { uuid } from '../../../api/fields/ids.ts';
import { endpoint } from '../../../api/http/endpoint.ts';
import { evaluate } from '../../../engine/db/call.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { auditEntries } from '../../support/audit_fixtures.ts';
import { createOrganization } from '../../support/fixtures.ts';

/** A transition that changes state and refuses all the same, or that raises. */
const probe = endpoint({
  method: 'post',
  path: '/organizations/{organizationId}/probes',
  audience: 'owner',
  tag: 'System',
  operationId: 'probe',
  summary: 'Changes something, and refuses',
  params: { organizationId: uuid },
  body: z.strictObject({ raise: z.boolean() }),
  response: { data: z.object({}) },
  errors: [{ status: 409, code: 'state_conflict', when: 'always' }],
  decision: { action: 'task.retry', subject: 'task', id: ['task', 'id'] },
  handler: ({ db, params, body, decision }) =>
    evaluate(db, slonik.fragment`app.probe(${params.organizationId}, ${body.raise})`, z.object({}), decision),
});

const app = await startTestApp(t, { endpoints: [probe] });
const sql = sqlOf(app);
const organizationId = await createOrganization(sql);
await sql.owner.query(`
  create table app.probes (organization_id uuid primary key);
  create function app.probe(p_organization_id uuid, p_raise boolean) returns jsonb language plpgsql security definer as $$
  begin
    insert into app.probes values (p_organization_id);
    if p_raise then perform app.fail(409, 'state_conflict', 'Refused'); end if;
    return app.problem(409, 'state_conflict', 'Refused, and noted');
  end $$;
  grant execute on function app.probe to runner_api`);

const path = `/organizations/${organizationId}/probes`;
const changes = async () => (await sql.owner.query('select from app.probes')).rowCount;

t.test('a transition that raises leaves neither change nor entry', async (test) => {
  test.match(await app.owner.post(path, { raise: true }), { status: 409, code: 'state_conflict' });
  test.equal(await changes(), 0);
  test.same(await auditEntries(sql, organizationId), []);
});

t.test('one that changes state and refuses leaves the change and an entry that says so', async (test) => {
  const reply = await app.owner.post(path, { raise: false });
  test.match(reply, { status: 409, code: 'state_conflict', body: { message: 'Refused, and noted' } });
  test.equal(await changes(), 1);
  test.match(await auditEntries(sql, organizationId), [
    {
      action: 'task.retry',
      subject_kind: 'task',
      subject_id: null,
      arguments: { raise: false },
      outcome: 'refused',
      code: 'state_conflict',
      request_id: reply.body.meta.requestId,
    },
  ]);
});
