import t from 'tap';
import {
  authorizationEpoch,
  claimNext,
  completeRun,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  deleteProfile,
  heartbeat,
  lastRequest,
  openItems,
  pull,
  runNext,
  startRun,
  statuses,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('disabling a profile ends its claims and runs and blocks its tasks; enabling lifts that', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createSecondProfile(sql, org);
  const running = (await createTask(sql, org, { priority: 9 })).id;
  const claimed = (await createTask(sql, org, { priority: 8 })).id;
  const ready = (await createTask(sql, org)).id;
  const blocked = (await createTask(sql, org, { dependsOn: [ready] })).id;
  const untouched = (await createTask(sql, other)).id;
  const run = await runNext(sql, org);
  const claim = await claimNext(sql, org);
  const before = await authorizationEpoch(sql, org.organizationId);
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.equal(await authorizationEpoch(sql, org.organizationId), before + 1);
  for (const id of [running, claimed, ready]) {
    test.match(await taskRow(sql, org, id), {
      status: 'blocked',
      blockers: [{ kind: 'profile' }],
      active_run_id: null,
    });
  }
  test.match(await taskRow(sql, org, blocked), {
    blockers: [{ kind: 'dependency', taskId: ready }, { kind: 'profile' }],
  });
  test.match(await taskRow(sql, org, untouched), { status: 'pending' });
  test.same(await openItems(sql, org, running), []);
  test.match(await refusal(startRun(sql.api, claim)), { status: 409, reason: 'lease_lost' });
  test.same(await heartbeat(sql.api, run), { status: 'cancelling' });
  test.same(await completeRun(sql.api, run), { status: 'cancelled' });
  test.equal(
    (await pull(sql.api, { organizationIds: [org.organizationId], limit: 9 })).length,
    1,
    'the other profile works on',
  );
  await updateProfile(sql.api, org, { status: 'enabled' });
  test.same(await statuses(sql, org, { running, claimed, ready, blocked }), {
    running: 'pending',
    claimed: 'pending',
    ready: 'pending',
    blocked: 'blocked',
  });
  test.equal(await authorizationEpoch(sql, org.organizationId), before + 2);
  test.match(await lastRequest(sql, org, running), { state: 'published', attempt: 0 });
});

scenario('disabling again, or changing only a name, touches no task', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const before = await authorizationEpoch(sql, org.organizationId);
  await updateProfile(sql.api, org, { name: 'Other' });
  test.match(await taskRow(sql, org, task.id), { version: 1 });
  test.equal(await authorizationEpoch(sql, org.organizationId), before);
  await updateProfile(sql.api, org, { status: 'disabled' });
  const once = await taskRow(sql, org, task.id);
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.same(await taskRow(sql, org, task.id), once);
  await updateProfile(sql.api, org, { config: { toolPolicyKeys: ['a'] } });
  test.equal(await authorizationEpoch(sql, org.organizationId), before + 2, 'a tool policy counts');
});

scenario('a disabled profile keeps an initiative open, and enabling it lets it end', async (test) => {
  const org = await createTestOrganization(sql);
  const worker = await createSecondProfile(sql, org);
  const { root } = await createInitiative(sql, org, []);
  const leaf = (await createTask(sql, worker, { parentId: root })).id;
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.match(await taskRow(sql, org, root), { blockers: [{ kind: 'children' }, { kind: 'profile' }] });
  await completeRun(sql.api, await runNext(sql, org));
  test.same(await statuses(sql, org, { root, leaf }), { root: 'blocked', leaf: 'completed' });
  await updateProfile(sql.api, org, { status: 'enabled' });
  test.match(await taskRow(sql, org, root), { status: 'completed' });
});

scenario('a profile of another organization is not found', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const missing = { status: 404, code: 'agent_profile_not_found' };
  test.match(await refusal(updateProfile(sql.api, { ...foreign, profileId: org.profileId }, { name: 'x' })), missing);
  test.match(await refusal(deleteProfile(sql.api, foreign.organizationId, org.profileId)), missing);
});

scenario('the end of a profile and the end of its runs at once', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const run = await runNext(sql, org);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  await completeRun(worker, run);
  const disabling = updateProfile(person, org, { status: 'disabled' });
  await person.waits();
  await worker.commit();
  await disabling;
  test.match(await taskRow(sql, org, task.id), { status: 'completed' });
});
