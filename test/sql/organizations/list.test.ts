import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  createOrganization,
  deleteOrganization,
  insertOrganization,
  listOrganizations,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('the list shows a member its own organizations, an operator all', async (test) => {
  const subject = `s-${randomUUID()}`;
  const own = randomUUID();
  await insertOrganization(sql.api, own, { slug: `s-${own}` }, subject);
  const other = await createOrganization(sql);
  test.same(await listOrganizations(sql, subject), [own]);
  const all = await listOrganizations(sql, null);
  test.ok(all.includes(own) && all.includes(other));
  await deleteOrganization(sql.api, own);
  test.same(await listOrganizations(sql, subject), []);
});
