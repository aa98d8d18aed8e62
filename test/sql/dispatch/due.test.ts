import t, { type Test } from 'tap';
import { z } from 'zod';
import { functionText } from '../../../engine/db/function_text.ts';
import { DUE_NAMES, dueWork } from '../../support/due_fixtures.ts';
import type { TestOrganization } from '../../support/fixtures.ts';
import { openSql } from '../../support/transitions.ts';

const READ = functionText('dispatch_due', { organizations: '$1', rows: '$2', after: '$3' });
const readSchema = z.array(z.object({ organization_id: z.uuid(), ids: z.array(z.uuid()).min(1) }));

type Read = z.output<typeof readSchema>;

for (const name of DUE_NAMES) {
  t.test(name, async (test) => {
    // A database of its own: of what is due there is what the test has made.
    const sql = await openSql(test);
    const work = dueWork(sql, name);

    async function read(organizations: number, rows: number, after?: string): Promise<Read> {
      const { rows: found } = await sql.jobs.query(
        `select organization_id, ids from ${READ} where kind = '${work.kind}'`,
        [organizations, rows, after === undefined ? {} : { [work.kind]: after }],
      );
      return readSchema.parse(found);
    }

    const counts = (found: Read) => Object.fromEntries(found.map(({ organization_id: id, ids }) => [id, ids.length]));

    async function many(test: Test): Promise<{ large: TestOrganization; small: TestOrganization }> {
      const large = await work.make(8);
      const small = await work.make(1);
      test.same(await read(3, 2), [], 'nothing is due');
      // The one that was made first is not due: an organization that has one is not passed over.
      await work.fallDue(large, 3_600, 7);
      await work.fallDue(small, 10);
      return { large, small };
    }

    await test.test(
      'an organization with much that is due leaves room for another one, the oldest first',
      async (test) => {
        const { large, small } = await many(test);
        test.same(counts(await read(3, 2)), { [large.organizationId]: 2, [small.organizationId]: 1 });
        for (const [organizations, rows] of [
          [2, 3],
          [100, 50],
        ] as const) {
          const found = await read(organizations, rows);
          test.same(counts(found), { [large.organizationId]: Math.min(rows, 7), [small.organizationId]: 1 });
          const ofLarge = found.find(({ organization_id: id }) => id === large.organizationId)?.ids;
          test.same(ofLarge, await work.oldest(large, Math.min(rows, 7)));
          test.not(ofLarge?.[0], ofLarge?.toSorted()[0], 'not by their ids');
        }
      },
    );

    await test.test('more organizations than a read takes have turns', async (test) => {
      const more = [await work.make(3), await work.make(3), await work.make(3)];
      for (const org of more) await work.fallDue(org, 3_600);
      const every = (await read(100, 50)).map((one) => one.organization_id);
      test.equal(every.length, 5);
      test.same(every, every.toSorted());
      const seen: string[] = [];
      for (let after: string | undefined, reads = 0; reads < 3; reads += 1) {
        const part = (await read(2, 1, after)).map((one) => one.organization_id);
        test.equal(part.length, reads < 2 ? 2 : 1);
        seen.push(...part);
        after = part.at(-1);
      }
      test.same(seen, every, 'each of them once, one after the other');
    });
  });
}
