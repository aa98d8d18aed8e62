import t from 'tap';
import {
  claimNext,
  createOrganization,
  createTask,
  createTestOrganization,
  lastRequest,
  releaseClaim,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a claim that is given back keeps its place in the line, and its token is worth nothing', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org, { title: 'first' });
  await createTask(sql, org, { title: 'second' });
  const claim = await claimNext(sql, org);
  const [fence, secret = ''] = claim.leaseToken.split('.');
  for (const leaseToken of [`${Number(fence) + 1}.${secret}`, `${fence}.${'0'.repeat(secret.length)}`, 'x']) {
    test.same(await releaseClaim(sql.api, { ...claim, leaseToken }), { released: false }, leaseToken);
  }
  test.same(await releaseClaim(sql.api, claim), { released: true });
  test.same(await releaseClaim(sql.api, claim), { released: false }, 'a repeat');
  const again = await claimNext(sql, org);
  test.equal(again.task.title, 'first');
  test.not(again.leaseToken, claim.leaseToken);
  test.match(await lastRequest(sql, org, again.task.id), { fence: 2, attempt: 0 });
  test.same(await releaseClaim(sql.api, { ...again, organizationId: await createOrganization(sql) }), {
    released: false,
  });
});
