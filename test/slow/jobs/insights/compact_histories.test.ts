// Histories that are made up: whatever is published, staged, merged and removed, each revision reads on as it first did.
import fc from 'fast-check';
import t from 'tap';
import { insightsClean } from '../../../../jobs/insights/clean.ts';
import { openCompactor } from '../../../jobs/insights/compacting.ts';
import { rounds } from '../../../support/full.ts';
import { publishFacts, tellings } from '../../../support/stored_facts.ts';
import { openSql } from '../../../support/transitions.ts';

const sql = await openSql(t);
const compactor = await openCompactor(t, sql);
const { run, seen, storage, world } = compactor;

const told = fc.uniqueArray(
  fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    amount: fc.constantFrom('1', '2.5', '-3'),
    isGone: fc.boolean(),
  }),
  { selector: ({ key }) => key, minLength: 1, maxLength: 3 },
);
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('publish'), told }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('stage'), told }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('publishStaged'), told }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('compact', 'clean') }) },
);

t.test('each revision reads on as it first did, while files are merged and removed', async (test) => {
  let merges = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 30 }), async (steps) => {
      const { place, month } = await world(tellings(13));
      const digests = new Map<number, string>();
      for (const one of steps) {
        const before = await seen(month);
        digests.set(before.revision, digests.get(before.revision) ?? before.sha256);
        if ('told' in one) {
          const result = { staged: one.kind !== 'publish', publishStaged: one.kind === 'publishStaged' };
          await publishFacts(sql, storage, place, one.told, result);
        } else if (one.kind === 'compact') {
          await run();
          const after = await seen(month);
          if (after.sha256 !== before.sha256 || after.files > 15) return false;
          merges += Number(after.revision > before.revision);
        } else {
          await insightsClean({}, compactor.context());
        }
      }
      for (const [revision, sha256] of digests) {
        if ((await seen(month, revision)).sha256 !== sha256) return false;
      }
      return true;
    }),
    { seed: 20_261_130, numRuns: rounds({ short: 3, full: 8 }) },
  );
  test.ok(merges > 0, `${merges} merges`);
});
