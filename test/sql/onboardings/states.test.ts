import t from 'tap';
import { scenarios } from '../../support/invariants.ts';
import { type Onboarding, onboardingIn, placeOf, publishCatalog, read } from '../../support/onboarding_fixtures.ts';
import { openSql, refusal } from '../../support/transitions.ts';
import { operationsOn } from './operations.ts';

const sql = await openSql(t);
const OPERATIONS = operationsOn(sql);
const scenario = scenarios(t, sql);
await publishCatalog(sql);

const STATES = ['collecting', 'researching', 'research_failed', 'review', 'completed', 'discarded'] as const;

/** What each state permits, and where it leads (docs/interface.md 3.2). */
const TABLE: Readonly<Record<(typeof STATES)[number], Readonly<Record<string, string>>>> = {
  collecting: {
    discard: 'discarded',
    setup: 'collecting',
    disposition: 'collecting',
    put: 'collecting',
    start: 'researching',
  },
  researching: { discard: 'discarded' },
  research_failed: {
    discard: 'discarded',
    setup: 'research_failed',
    disposition: 'research_failed',
    put: 'research_failed',
    start: 'researching',
    retry: 'researching',
  },
  review: { discard: 'discarded', setup: 'review', disposition: 'review', put: 'collecting', complete: 'completed' },
  completed: {},
  discarded: {},
};

for (const state of STATES) {
  scenario(`${state}: what is permitted, and where it leads`, async (test) => {
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      const next = TABLE[state][name];
      const onboarding = await onboardingIn(sql, state);
      if (next !== undefined) {
        const after = (await operation(onboarding)) as Onboarding;
        test.equal(after.status, next, name);
        test.equal(after.generation, onboarding.generation + 1);
        continue;
      }
      const refused = await refusal(operation(onboarding));
      test.match(refused, { status: state === 'discarded' ? 404 : 409, code: 'request_failed', raised: true }, name);
      if (state !== 'discarded') test.same(await read(sql, placeOf(onboarding)), onboarding, 'nothing changed');
    }
  });
}
