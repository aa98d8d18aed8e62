import t from 'tap';
import { adminClient, type Row } from '../../support/admin.ts';
import { sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTenant } from '../../support/tenant.ts';

const app = await startTestApp(t);
const own = await createTenant(sqlOf(app));
await createTenant(sqlOf(app));
const admin = adminClient(app);

type Page = Readonly<{ nodes: Row[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } }>;

t.test('a task with what it is related to, and why it does not run', async (test) => {
  const { tasks } = await admin.query<{ tasks: Page }>(
    `query Tasks($organization: UUID!) {
      tasks(filter: { organizationId: { equalTo: $organization }, status: { in: [blocked] } }) {
        nodes {
          id identifier status phase title
          causes { kind details }
          organization { id name status }
          ownerAgentProfile { key kind }
          dependencies(first: 5) { nodes { required dependsOnTask { identifier status } } }
          runs(first: 5) { nodes { id status durationSeconds costMinorUnits runRequest { state leaseRemainingSeconds queueAgeSeconds } logs(first: 5) { nodes { sequence label } } } }
        }
      }
    }`,
    { organization: own.organizationId },
  );
  test.ok(tasks.nodes.length > 0);
  test.match(tasks.nodes[0], { organization: { id: own.organizationId } });
});
