import t from 'tap';
import {
  createInitiative,
  createTask,
  createTestOrganization,
  deleteOrganization,
  insertOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { createTenant } from '../../support/tenant.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

function purge(organizationId: string, limit = 1000, forget = true) {
  return transition(sql.jobs, 'organization_purge', {
    organizationId,
    limit,
    forget,
  });
}

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
    await deleteOrganization(sql.api, org.organizationId);
    let steps = 0;
    for (; (await purge(org.organizationId, 1))['done'] === false; steps += 1) test.ok(steps < 200);
    test.ok(steps >= 20, 'row by row, as it was asked');
    for (const [table, rows] of Object.entries(await count(org.organizationId))) test.equal(rows, 0, table);
    test.same(await count(other.organizationId), kept);
    test.match(await purge(org.organizationId), { done: true, gone: true }, 'again');
    await insertOrganization(sql.api, org.organizationId, { slug: `new-${org.organizationId}` });
  },
);

scenario('the row of a deleted organization stays until it may be forgotten', async (test) => {
  const org = await createTestOrganization(sql);
  await deleteOrganization(sql.api, org.organizationId);
  test.match(await purge(org.organizationId, 100, false), { done: true, gone: false });
  test.match(await refusal(insertOrganization(sql.api, org.organizationId, { slug: 'new' })), conflict);
  test.match(await purge(org.organizationId, 100, true), { done: true, gone: true });
});
