import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createOrganization, updateOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };
const gone = { status: 404, code: 'organization_not_found' };

scenario('a patch changes what it names; what it removes has its default again', async (test) => {
  const organizationId = await createOrganization(sql, { limits: { maxTaskDepth: 9 } });
  const result = await updateOrganization(
    sql.api,
    { organizationId },
    { name: 'New', config: { timezone: 'Europe/Berlin' } },
  );
  test.match(result, {
    organization: { name: 'New', config: { timezone: 'Europe/Berlin', limits: { maxTaskDepth: 9 } } },
  });
  test.match(await updateOrganization(sql.api, { organizationId }, { config: { limits: null } }), {
    organization: { config: { timezone: 'Europe/Berlin', limits: { maxTaskDepth: 5 } } },
  });
  const other = await createOrganization(sql, { slug: `taken-${organizationId}` });
  test.match(await refusal(updateOrganization(sql.api, { organizationId }, { slug: `taken-${organizationId}` })), {
    status: 409,
    code: 'request_failed',
  });
  test.match(await refusal(updateOrganization(sql.api, { organizationId: randomUUID() }, {})), gone);
  test.not(other, organizationId);
});

scenario('the authorization epoch only rises, and rises with the constraints', async (test) => {
  const organizationId = await createOrganization(sql);
  const patch = (fields: JsonObject) => updateOrganization(sql.api, { organizationId }, fields);
  test.match(await patch({ authorizationEpoch: 5 }), { organization: { authorization_epoch: 5 } });
  test.match(await refusal(patch({ authorizationEpoch: 4 })), { ...conflict, reason: 'lowered' });
  test.match(await patch({ constraints: { blockedDomains: ['x.example'] } }), {
    organization: { authorization_epoch: 6 },
  });
  test.match(await patch({ constraints: { blockedDomains: ['x.example'] } }), {
    organization: { authorization_epoch: 6 },
  });
  test.match(await patch({ constraints: { blockedDomains: [] }, authorizationEpoch: 6 }), {
    organization: { authorization_epoch: 7 },
  });
  test.match(await patch({ name: 'Other' }), { organization: { authorization_epoch: 7 } });
});
