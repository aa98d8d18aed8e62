import { randomUUID } from 'node:crypto';
import t from 'tap';
import { loadGraphileForProduction } from '../../../engine/config.ts';
import { createTenant } from '../../support/tenant.ts';
import { openSql, transition } from '../../support/transitions.ts';

loadGraphileForProduction();
const { explain } = await import('../../../api/admin/schema/computed.ts');

const sql = await openSql(t);
const own = await createTenant(sql);
const gone = await createTenant(sql);

/** As the schema reads: with the rights of the administration, for all organizations. */
const withPgClient = ((_: null, work: (client: unknown) => unknown) => work(sql.admin)) as never;

t.test('tasks that are gone have no causes, and those beside them have theirs', async (test) => {
  const { rows } = await sql.owner.query<{ organization: string; task: string }>(
    `select organization_id::text as organization, id::text as task from app.tasks
     where organization_id = any ($1) and status in ('pending', 'blocked') order by created_at, id`,
    [[own.organizationId, gone.organizationId]],
  );
  await transition(sql.api, 'organization_delete', { organizationId: gone.organizationId });
  const asked: [string, string][] = rows.map(({ organization, task }) => [organization, task]);
  asked.splice(1, 0, [own.organizationId, randomUUID()]);
  // The loader asks for each pair once; what it may not rely on is that somebody else does so too.
  asked.push(asked[0] as [string, string]);
  const causes = await explain(asked, { shared: withPgClient });
  const there = new Set(rows.filter(({ organization }) => organization === own.organizationId).map(({ task }) => task));
  test.ok(there.size > 0 && there.size < rows.length);
  test.same(
    causes.map(({ length }) => length > 0),
    asked.map(([, task]) => there.has(task)),
  );
});
