import t from 'tap';
import { createTestOrganization, runNew } from '../../support/fixtures.ts';
import { account, allow, beginFlow, createConnected, resolveGateway } from '../../support/integration_fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { openJobs, runJob } from '../support.ts';

const sql = await openSql(t);
await openJobs(t, sql.url);

t.test('flows and capabilities go an hour after their end, all of them, and no other', async (t) => {
  const org = await createTestOrganization(sql);
  const { id } = await createConnected(sql, org, { provider: 'google-workspace' }, account('acme', { kind: 'oauth2' }));
  await allow(sql, org, 'integrations.read');
  const { runId } = await runNew(sql, org);
  for (let n = 0; n < 2; n += 1) {
    await beginFlow(sql, org, id);
    await resolveGateway(sql, org, id, { runId });
  }
  const rows = async () => {
    const { rows: found } = await sql.owner.query(
      `select (select count(*)::integer from app.integration_oauth_states) as flows,
         (select count(*)::integer from app.integration_gateway_capabilities) as capabilities`,
    );
    return found[0];
  };
  await runJob(sql.owner, 'integrations__clean');
  t.same(await rows(), { flows: 2, capabilities: 2 });
  // More than a batch, of which each ended an hour ago.
  await sql.owner.query(
    `update app.integration_oauth_states set expires_at = now() - interval '61 minutes'
     where id = (select min(id::text)::uuid from app.integration_oauth_states)`,
  );
  await sql.owner.query(
    `insert into app.integration_gateway_capabilities (organization_id, token_hash, integration_id, agent_profile_id,
       run_id, kind, connection_revision, authorization_epoch, expires_at)
     select g.organization_id, md5(n::text) || md5(n::text), g.integration_id, g.agent_profile_id, g.run_id, g.kind, 1, 1,
       now() - interval '61 minutes'
     from generate_series(1, 1100) n, (select * from app.integration_gateway_capabilities limit 1) g`,
  );
  await runJob(sql.owner, 'integrations__clean');
  t.same(await rows(), { flows: 1, capabilities: 2 });
});
