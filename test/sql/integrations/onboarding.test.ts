import t from 'tap';
import { createIntegration, integrationCreate } from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { finish, onboardingIn, placeOf, publishCatalog, read } from '../../support/onboarding_fixtures.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
await publishCatalog(sql);
const scenario = scenarios(t, sql);

scenario('an integration may be made while an organization is onboarded, which raises the generation', async (test) => {
  for (const status of ['collecting', 'researching', 'research_failed', 'review', 'completed']) {
    const before = await onboardingIn(sql, status);
    const org = placeOf(before);
    await createIntegration(sql, org, { key: 'shop' });
    const after = await read(sql, org);
    test.equal(after.generation, before.generation + (status === 'completed' ? 0 : 1), status);
    test.equal(after.status, status);
    test.equal((await refusal(integrationCreate(sql.api, org, { key: 'shop' }))).reason, 'in_use');
    test.equal((await read(sql, org)).generation, after.generation, 'a refusal changes nothing');
    if (status === 'researching') test.ok(await finish(sql, org, before.generation), 'the research goes on');
  }
});
