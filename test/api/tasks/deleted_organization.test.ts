import { randomUUID } from 'node:crypto';
import t from 'tap';
import { agentPath, makeTask, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const nobody = randomUUID();

t.test('a deleted organization has no tasks from that moment on', async (t) => {
  const gone = await createTestOrganization(sql);
  const task = await makeTask(app, gone);
  await transition(sql.api, 'organization_delete', { organizationId: gone.organizationId });
  for (const organizationId of [gone.organizationId, nobody]) {
    const path = ownerPath({ organizationId }, '/tasks');
    t.equal(refusalOf(await app.owner.get(path)), '404 organization_not_found');
    const created = await app.owner.post(path, { title: 'x', ownerProfileKey: gone.profileKey });
    t.equal(refusalOf(created), '404 organization_not_found');
  }
  for (const call of [
    app.owner.get(ownerPath(gone, `/tasks/${task.id}`)),
    app.owner.post(ownerPath(gone, `/tasks/${task.id}/cancel`)),
    app.owner.post(ownerPath(gone, `/tasks/${task.id}/retry`)),
    app.owner.put(ownerPath(gone, `/tasks/${task.id}/inputs/a`), 'x'),
  ]) {
    t.match(refusalOf(await call), /^404 (organization|task)_not_found$/);
  }
  t.equal(refusalOf(await app.service.get(agentPath(gone, '/tasks'))), '404 not_found');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
