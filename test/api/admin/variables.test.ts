import t from 'tap';
import { adminClient } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
const admin = adminClient(app);

const found = { organizations: { nodes: [{ id: own.organizationId }] } };
const none = { organizations: { nodes: [] } };

t.test('a part of a filter that is left out is no condition', async (test) => {
  const bySlug = 'query ($slug: String) { organizations(filter: { slug: { equalTo: $slug } }) { nodes { id } } }';
  test.same(await admin.query(bySlug), found);
  test.same(await admin.query(bySlug, { slug: 'nobody' }), none);
  const whole = 'query ($filter: OrganizationFilter) { organizations(filter: $filter) { nodes { id } } }';
  for (const filter of [undefined, {}, { slug: {} }]) {
    test.same(await admin.query(whole, { filter }), found, JSON.stringify(filter));
  }
});

t.test('a null in a filter is refused, as it would find everything or nothing', async (test) => {
  const filtered = (filter: string) => `{ organizations(filter: ${filter}) { nodes { id } } }`;
  const refusals = [
    await admin.refused(filtered('null')),
    await admin.refused(filtered('{ slug: null }')),
    await admin.refused(filtered('{ slug: { equalTo: null } }')),
    await admin.refused('query ($filter: OrganizationFilter) { organizations(filter: $filter) { nodes { id } } }', {
      filter: null,
    }),
  ];
  for (const { data, errors } of refusals) {
    test.same(data, { organizations: null });
    test.match(errors, [{ extensions: { code: 'validation_failed', issues: [{ code: 'null_in_filter' }] } }]);
  }
});

t.test('an order that is the default of a variable needs its index as any other', async (test) => {
  const orders = ['$by: [TaskOrderBy!] = [PRIORITY_DESC]', '$by: [TaskOrderBy!] = PRIORITY_DESC'];
  for (const order of orders) {
    const query = `query (${order}) { tasks(orderBy: $by) { nodes { id } } }`;
    const { errors } = await admin.refused(query);
    test.match(errors, [{ extensions: { issues: [{ code: 'organization_required' }] } }], order);
    test.ok(await admin.query(query, { by: ['CREATED_AT_ASC'] }));
    test.ok(await adminClient(app, own.organizationId).query(query));
  }
  const one = await admin.refused(
    'query ($by: TaskOrderBy! = PRIORITY_ASC) { tasks(orderBy: [$by]) { nodes { id } } }',
  );
  test.match(one.errors, [{ extensions: { issues: [{ code: 'organization_required' }] } }]);
});
