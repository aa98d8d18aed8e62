import t from 'tap';
import { z } from 'zod';
import { functionText } from '../../../engine/db/function_text.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { createConnected } from '../../support/integration_fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';

const DUE = functionText('integrations_due', { kind: '$1', organizations: '$2', rows: '$3', after: '$4' });
const dueSchema = z.array(z.object({ organization_id: z.uuid(), id: z.uuid() }));

const kinds = {
  check: { table: 'integration_connections', id: 'integration_id', time: 'check_due_at' },
  refresh: { table: 'integration_connections', id: 'integration_id', time: 'refresh_due_at' },
  repair: { table: 'integration_context_repairs', id: 'id', time: 'created_at' },
} as const;

for (const [kind, { table, id, time }] of Object.entries(kinds)) {
  t.test(kind, async (test) => {
    // A database of its own: of what is due there is what the test has made.
    const sql = await openSql(test);

    async function read(organizations: number, rows: number, after?: string) {
      const { rows: found } = await sql.jobs.query(`select * from ${DUE}`, [kind, organizations, rows, after]);
      return dueSchema.parse(found);
    }

    /** So many, due for so many seconds and a bit less one after the other, against the order of their ids. */
    async function make(count: number, seconds: number): Promise<Readonly<{ organizationId: string; ids: string[] }>> {
      const org: TestOrganization = await createTestOrganization(sql);
      const { organizationId } = org;
      for (let made = 0; made < count; made += 1) {
        const { id: integrationRef } = await createConnected(sql, org, { key: `shop-${made}` });
        const mapping = { role: 'primary' };
        if (kind === 'repair') {
          await transition(sql.api, 'integration_context_mapping_put', { organizationId, integrationRef, mapping });
        }
      }
      await sql.owner.query(
        `update app.${table} r
         set ${time} = now() - make_interval(secs => $2) + n.n * interval '1 millisecond'
         from (select ${id} as id, row_number() over (order by ${id} desc) as n from app.${table}
           where organization_id = $1) n
         where r.organization_id = $1 and r.${id} = n.id`,
        [organizationId, seconds],
      );
      const { rows } = await sql.owner.query<{ id: string }>(
        `select ${id} as id from app.${table} where organization_id = $1 order by ${time}`,
        [organizationId],
      );
      return { organizationId, ids: rows.map((row) => row.id) };
    }

    const large = await make(5, 3_600);
    const small = await make(1, 10);

    await test.test('organizations take turns, the oldest of each first', async (test) => {
      const turns = [large.ids[0], small.ids[0], ...large.ids.slice(1)];
      const ids = async (organizations: number, rows: number) => (await read(organizations, rows)).map((row) => row.id);
      test.same(await ids(100, 50), turns, 'where little is due');
      test.same(await ids(2, 3), turns.slice(0, 4), 'and where much is');
      test.not(large.ids[0], large.ids.toSorted()[0], 'not by their ids');
    });

    await test.test('more organizations than a read takes have turns', async (test) => {
      const more = [await make(2, 60), await make(2, 60), await make(2, 60)];
      const every = [large, small, ...more].map(({ organizationId }) => organizationId).toSorted();
      const seen: string[] = [];
      for (let after: string | undefined, reads = 0; reads < 3; reads += 1) {
        const part = (await read(2, 1, after)).map((one) => one.organization_id).toSorted();
        test.equal(part.length, reads < 2 ? 2 : 1);
        seen.push(...part);
        after = part.at(-1);
      }
      test.same(seen, every, 'each of them once, one after the other');
    });
  });
}
