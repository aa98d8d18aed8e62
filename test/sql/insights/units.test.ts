import t from 'tap';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import {
  adapters,
  claim,
  claimed,
  commit,
  createCollected,
  createConnector,
  endLease,
  fail,
  found,
  leaseOf,
  type Place,
  passTime,
  putSources,
  segment,
  type UnitRow,
} from '../../support/insight_fixtures.ts';
import { account, connect } from '../../support/integration_fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const { jobs } = sql;
const late = { status: 409, code: 'state_conflict', reason: 'lease_taken' };

const rows = async (text: string, ...values: unknown[]) => (await sql.owner.query(text, values)).rows;
const one = async (text: string, ...values: unknown[]) => (await rows(text, ...values))[0];
const sourcesOf = (org: TestOrganization) =>
  rows(
    'select * from app.insight_sources where organization_id = $1 order by created_at, resource_id',
    org.organizationId,
  );
const cursorsOf = (org: TestOrganization) =>
  rows(
    `select c.*, c.due_at <= now() as is_due, extract(epoch from c.due_at - now())::int as seconds from app.insight_cursors c
     where organization_id = $1 order by source_id, mode`,
    org.organizationId,
  );
const stateOf = async ({ id }: UnitRow) => (await one('select state from app.insight_units where id = $1', id)).state;
const connectorOf = ({ integrationId }: Place) =>
  one('select *, due_at <= now() as is_due from app.insight_connectors where integration_id = $1', integrationId);
const headOf = async (org: TestOrganization) =>
  Number((await one('select revision from app.insight_heads where organization_id = $1', org.organizationId)).revision);

t.test(
  'a connection that is made has its sources looked for, and each of them collected, the tail before the past',
  async (test) => {
    const org = await createTestOrganization(sql);
    const place = await createConnector(sql, org);
    const discovery = await claimed(jobs, place);
    test.match(discovery, { mode: 'discovery', fence: 1, source: null });
    test.equal(await claim(jobs, place), 'leased');
    test.match(await putSources(jobs, discovery, [found('a'), found('b', { timezone: 'Europe/Berlin' })]), {
      committed: true,
      sources: 2,
    });
    test.match(await putSources(jobs, discovery, [found('c')]), { committed: true }, 'a repeat changes nothing');
    test.match(await sourcesOf(org), [
      { resource_id: 'a', timezone: 'UTC', generation: 1, in_scope: true },
      { resource_id: 'b', timezone: 'Europe/Berlin' },
    ]);
    const modes: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const unit = await claimed(jobs, place);
      modes.push(unit.mode);
      test.equal(unit.fence, round + 2);
      await commit(jobs, unit, { done: true });
    }
    test.same(modes, ['tail', 'tail', 'backfill', 'backfill']);
    test.equal(await claim(jobs, place), 'nothing');
    const { due_at: due, discovery_due_at: discoveryDue } = await connectorOf(place);
    test.same(due, discoveryDue, 'next come its sources, in a day');
  },
);

t.test('a unit commits files and cursor together, as one revision of its organization', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const unit = await claimed(jobs, place);
  const coverage = [{ start: '2026-01-01T00:00:00.000Z', end: '2026-02-01T00:00:00.000Z', state: 'complete' }];
  const result = { cursor: { page: 2 }, coverage, segments: [segment(), segment('2026-02')] };
  test.match(await commit(jobs, unit, result), { committed: true, revision: 1 });
  test.match(await commit(jobs, unit, result), { committed: true, revision: 1 }, 'a repeat');
  test.equal(await headOf(org), 1);
  const again = await claimed(jobs, place);
  test.match(again, { mode: 'tail', cursor: { page: 2 }, source: { coverage } });
  test.match(await commit(jobs, again, { done: true, nextDueAt: new Date(Date.now() + 900_000).toISOString() }), {
    revision: null,
  });
  test.equal(await headOf(org), 1, 'nothing has changed');
  test.match(
    await rows('select added, retired from app.insight_publications where organization_id = $1', org.organizationId),
    [{ added: 2, retired: 0 }],
  );
  const [, tail] = await cursorsOf(org);
  test.match(tail, { mode: 'tail', is_due: false, seconds: 900 });
  const sourceId = again.source?.id ?? '';
  const at = (revision: number | null) =>
    transition(jobs, 'insight_segments_read', {
      organizationId: org.organizationId,
      sourceId,
      from: null,
      to: null,
      revision,
    });
  test.match(await at(null), { revision: 1, segments: [{ month: '2026-01' }, { month: '2026-02' }] });
  test.match(await at(0), { segments: [] });
});

t.test('files of a snapshot are published with its last page, and together', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const first = await claimed(jobs, place);
  test.match(await commit(jobs, first, { segments: [segment('2026-01', { staged: true })] }), { revision: null });
  const second = await claimed(jobs, place);
  test.match(
    await commit(jobs, second, { publishStaged: true, done: true, segments: [segment('2026-01', { staged: true })] }),
    {
      revision: 1,
    },
  );
  const segments = await rows(
    'select staged, published_revision::int from app.insight_segments where organization_id = $1',
    org.organizationId,
  );
  test.same(segments, Array(2).fill({ staged: false, published_revision: 1 }));
  const publications = await rows(
    'select added from app.insight_publications where organization_id = $1',
    org.organizationId,
  );
  test.same(publications, [{ added: 2 }]);
});

t.test('a round that begins anew keeps what earlier ones have told', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  await commit(jobs, await claimed(jobs, place), { cursor: { known: 5, after: 'x' }, round: { first: 1 } });
  await fail(jobs, await claimed(jobs, place), { code: 'cursor_moved' }, { restart: { cursor: { known: 5 } } });
  await passTime(sql, place);
  const again = await claimed(jobs, place);
  test.same([again.cursor, again['round']], [{ known: 5 }, null]);
});

t.test('a round that begins anew drops what it had staged', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  await commit(jobs, await claimed(jobs, place), { cursor: 1, segments: [segment('2026-01', { staged: true })] });
  const unit = await claimed(jobs, place);
  test.match(await fail(jobs, unit, { code: 'cursor_moved' }, { restart: { cursor: null } }), { failed: true });
  test.match(await fail(jobs, unit, {}, { restart: { cursor: null } }), { failed: true }, 'a repeat');
  const [dropped] = await rows('select * from app.insight_segments where organization_id = $1', org.organizationId);
  test.match(dropped, { staged: false, published_revision: null, retired_revision: null });
  test.ok(dropped.retired_at);
  await passTime(sql, place);
  test.match(await claimed(jobs, place), { mode: 'tail', cursor: null });
});

t.test(
  'what fails is tried again later, the longer the more often it failed, and not before its provider wants',
  async (test) => {
    const org = await createTestOrganization(sql);
    const place = await createCollected(sql, org);
    const waits: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      await passTime(sql, place);
      await fail(jobs, await claimed(jobs, place));
      waits.push((await cursorsOf(org))[1].seconds);
    }
    test.same(
      waits.map((seconds) => Math.round(seconds / 60)),
      [1, 1, 5, 10, 20],
    );
    test.match(await sourcesOf(org), [
      { failure_count: 5, last_error: { code: 'provider_unavailable', message: 'down' } },
    ]);
    await passTime(sql, place);
    const until = new Date(Date.now() + 7_200_000).toISOString();
    await fail(jobs, await claimed(jobs, place), { code: 'throttled', isOurs: true }, { retryNotBefore: until });
    test.match(await sourcesOf(org), [{ failure_count: 5 }], 'a limit is no failure');
    const { due_at: due } = await connectorOf(place);
    test.equal(due.toISOString(), until, 'nor is its past asked for before');
    await passTime(sql, place);
    await commit(jobs, await claimed(jobs, place), { done: true });
    test.match(await sourcesOf(org), [{ failure_count: 0, last_error: null }]);
  },
);

t.test('pages that came before a failure are kept', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const error = { code: 'provider_unavailable', message: 'down' };
  test.match(await commit(jobs, await claimed(jobs, place), { cursor: 7, segments: [segment()], error }), {
    revision: 1,
  });
  const [, tail] = await cursorsOf(org);
  test.match(tail, { cursor: 7, is_due: false, failure_count: 1 });
  test.match(await sourcesOf(org), [{ last_error: error, last_completed_at: null }]);
});

t.test('nobody writes after its lease, or with the fence of another claim', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const dead = await claimed(jobs, place);
  await endLease(sql, place);
  const calls = [
    (unit: UnitRow) => commit(jobs, unit, { segments: [segment()] }),
    (unit: UnitRow) => fail(jobs, unit),
    (unit: UnitRow) => transition(jobs, 'insight_unit_release', leaseOf(unit)),
    (unit: UnitRow) => putSources(jobs, unit, []),
  ];
  for (const send of calls) test.match(await refusal(send(dead)), late, 'before anybody has claimed it anew');
  const next = await claimed(jobs, place);
  test.match(next, { mode: 'backfill', fence: dead.fence + 1 }, 'what has expired waits');
  test.equal(await stateOf(dead), 'expired');
  test.match(await sourcesOf(org), [{ failure_count: 1, last_error: { code: 'lease_expired' } }]);
  test.match(await commit(jobs, dead, { segments: [segment()] }), { committed: false });
  test.match(await refusal(commit(jobs, { ...next, fence: next.fence - 1 })), late);
  test.match(await refusal(commit(jobs, { ...next, id: dead.id })), late);
  test.match(await commit(jobs, next, { segments: [segment()] }), { committed: true, revision: 1 });
});

t.test('a process that stops gives its unit back', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const unit = await claimed(jobs, place);
  const release = () => transition(jobs, 'insight_unit_release', leaseOf(unit));
  test.match(await release(), { released: true });
  test.match(await release(), { released: true }, 'a repeat');
  test.equal(await stateOf(unit), 'released');
  test.match(await connectorOf(place), { unit_id: null, is_due: true });
});

t.test('what a unit was claimed for changes: it commits nothing, and what it was of goes on', async (test) => {
  const changes: [string, (org: TestOrganization, place: Place) => Promise<unknown>][] = [
    [
      'what agents may do',
      (org) =>
        sql.owner.query('update app.organizations set authorization_epoch = authorization_epoch + 1 where id = $1', [
          org.organizationId,
        ]),
    ],
    [
      'the account',
      (org, { integrationId }) =>
        connect(sql.api, org, integrationId, account('other'), { revision: 1, replaceAccount: true }),
    ],
    [
      'the settings',
      (org, { integrationId }) =>
        transition(sql.api, 'integration_settings_put', {
          organizationId: org.organizationId,
          integrationRef: integrationId,
          connectionRevision: 1,
          settings: { kind: 'stripe', x: 1 },
          disconnect: false,
          forgetTools: false,
        }),
    ],
  ];
  for (const [name, change] of changes) {
    const org = await createTestOrganization(sql);
    const place = await createCollected(sql, org);
    await commit(jobs, await claimed(jobs, place), { cursor: 5, segments: [segment()] });
    const unit = await claimed(jobs, place);
    await change(org, place);
    test.match(
      await commit(jobs, unit, { cursor: 6, segments: [segment()] }),
      { committed: false, revision: null },
      name,
    );
    test.equal(await stateOf(unit), 'discarded', name);
    test.equal(await headOf(org), 1, name);
    test.match((await cursorsOf(org))[1], { cursor: 5 }, name);
    test.match(await connectorOf(place), { is_due: true }, name);
  }
});

t.test(
  'other credentials keep the source and its cursors, other settings begin anew and keep what is published',
  async (test) => {
    const org = await createTestOrganization(sql);
    const place = await createCollected(sql, org);
    await commit(jobs, await claimed(jobs, place), {
      cursor: 5,
      segments: [segment()],
      coverage: [{ state: 'complete' }],
    });
    await commit(jobs, await claimed(jobs, place), {
      cursor: 6,
      done: true,
      nextDueAt: new Date(Date.now() + 9e5).toISOString(),
    });
    const [before] = await sourcesOf(org);
    await transition(sql.api, 'integration_disconnect', {
      organizationId: org.organizationId,
      integrationRef: place.integrationId,
    });
    await connect(sql.api, org, place.integrationId, account('acme'), { revision: 2 });
    const again = await claimed(jobs, place);
    test.equal(again.mode, 'discovery');
    await putSources(jobs, again, [found('r1')]);
    await passTime(sql, place);
    const tail = await claimed(jobs, place);
    test.match(tail, { mode: 'tail', cursor: 6, source: { id: before.id } });
    test.match(await sourcesOf(org), [{ id: before.id, generation: 2 }]);
    await transition(jobs, 'insight_unit_release', leaseOf(tail));

    await sql.owner.query(`update app.integrations set settings = '{"kind": "stripe", "x": 1}' where id = $1`, [
      place.integrationId,
    ]);
    const other = await claimed(jobs, place);
    test.equal(other.mode, 'discovery');
    await putSources(jobs, other, [found('r1')]);
    test.match(await claimed(jobs, place), { mode: 'tail', cursor: null, source: { id: before.id, coverage: [] } });
    const [published] = await rows(
      'select retired_at from app.insight_segments where organization_id = $1',
      org.organizationId,
    );
    test.equal(published.retired_at, null);
  },
);

t.test('another adapter collects everything anew', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  await commit(jobs, await claimed(jobs, place), { cursor: 5, done: true, nextDueAt: new Date().toISOString() });
  await commit(jobs, await claimed(jobs, place), { cursor: 6, done: true, nextDueAt: new Date().toISOString() });
  const unit = await claimed(jobs, place, { adapters: adapters(2) });
  test.match(unit, { mode: 'tail', cursor: null });
  test.match(await sourcesOf(org), [{ adapter_version: 2, generation: 2 }]);
  test.match(
    (await cursorsOf(org)).map(({ mode, is_due }) => [mode, is_due]),
    [
      ['backfill', true],
      ['tail', true],
    ],
  );
});

t.test('what is no longer named is not collected, and a zone that moves makes another source', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createConnector(sql, org);
  await putSources(jobs, await claimed(jobs, place), [found('a', { timezone: 'Europe/Berlin' }), found('b')], 0);
  await passTime(sql, place);
  await putSources(jobs, await claimed(jobs, place), [found('a', { timezone: 'Asia/Tokyo' })], 86_400);
  test.match(await sourcesOf(org), [
    { resource_id: 'a', timezone: 'Europe/Berlin', in_scope: false },
    { resource_id: 'b', in_scope: false },
    { resource_id: 'a', timezone: 'Asia/Tokyo', in_scope: true },
  ]);
  test.match(await claimed(jobs, place), { source: { timezone: 'Asia/Tokyo' } });
});

t.test('of two connections to one account the first collects, and the other takes over', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await createCollected(sql, org, 'a');
  const second = await createConnector(sql, org);
  test.match(await putSources(jobs, await claimed(jobs, second), [found('a')], 0), { sources: 0 });
  test.match(await sourcesOf(org), [{ integration_id: first.integrationId }]);
  await transition(sql.api, 'integration_disconnect', {
    organizationId: org.organizationId,
    integrationRef: first.integrationId,
  });
  await passTime(sql, second);
  test.match(await putSources(jobs, await claimed(jobs, second), [found('a')]), { sources: 1 });
  test.match(await sourcesOf(org), [{ integration_id: second.integrationId }]);
});

t.test('who may not be asked is not due until that changes', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const { organizationId } = org;
  const set = (status: string) =>
    transition(sql.api, 'integration_status_set', { organizationId, integrationRef: place.integrationId, status });
  await set('disabled');
  test.equal(await claim(jobs, place), 'unavailable');
  test.match(await connectorOf(place), { due_at: null });
  await set('enabled');
  test.match(await claimed(jobs, place), { mode: 'discovery' });
  await endLease(sql, place);
  await sql.owner.query(`update app.organizations set status = 'suspended' where id = $1`, [organizationId]);
  test.equal(await claim(jobs, place), 'paused');
  const { due_at: due } = await connectorOf(place);
  test.ok(due > new Date(), 'it is looked at again');
  test.equal(await claim(jobs, place, { adapters: {} }), 'paused');
});

t.test('an organization has so many units at once, and a connector one, whoever claims', async (test) => {
  const org = await createTestOrganization(sql);
  const places = await Promise.all(Array.from({ length: 5 }, () => createConnector(sql, org)));
  const claims = await Promise.all([...places, ...places].map((place) => claim(jobs, place)));
  const units = claims.filter((one) => typeof one !== 'string');
  test.equal(units.length, 2);
  test.equal(new Set(units.map(({ integrationId }) => integrationId)).size, 2);
  for (const unit of units) await putSources(jobs, unit, []);
  test.equal(
    typeof (await claim(
      jobs,
      places.find((place) => !units.some((u) => u.integrationId === place.integrationId)) as Place,
    )),
    'object',
  );
});

t.test('two that commit at once follow each other, and no revision is left out', async (test) => {
  const org = await createTestOrganization(sql);
  const places = [await createCollected(sql, org), await createConnector(sql, org, 'other')];
  await putSources(jobs, await claimed(jobs, places[1] as Place), [found('x')]);
  const units = await Promise.all(places.map((place) => claimed(jobs, place)));
  const session = await openSession(test, sql, 'runner_jobs');
  await session.query('begin', []);
  await commit(session, units[0] as UnitRow, { segments: [segment()] });
  const second = commit(jobs, units[1] as UnitRow, { segments: [segment()] });
  test.equal(await headOf(org), 0, 'nobody sees what is not committed');
  await session.query('commit', []);
  test.match(await second, { revision: 2 });
});

t.test('another organization claims and commits nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  test.equal(await claim(jobs, { ...place, organizationId: other.organizationId }), 'gone');
  const unit = await claimed(jobs, place);
  test.match(await refusal(commit(jobs, { ...unit, organizationId: other.organizationId })), late);
  test.match(await refusal(fail(jobs, { ...unit, organizationId: other.organizationId })), late);
  test.equal(await stateOf(unit), 'leased');
});

t.test('a unit of a connection that lost its source leaves alone what the other one collects', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await createCollected(sql, org, 'a');
  const second = await createConnector(sql, org);
  const slow = await claimed(jobs, first);
  const { organizationId } = org;
  await transition(sql.api, 'integration_disconnect', { organizationId, integrationRef: first.integrationId });
  await putSources(jobs, await claimed(jobs, second), [found('a')]);
  const taken = await claimed(jobs, second);
  test.equal(taken.source?.id, slow.source?.id);
  await commit(jobs, taken, { cursor: 5, segments: [segment('2026-01', { staged: true })] });
  test.match(await fail(jobs, slow, { code: 'cursor_moved' }, { restart: { cursor: null } }), { failed: false });
  test.equal(await stateOf(slow), 'discarded');
  const staged = await rows(
    'select id from app.insight_segments where organization_id = $1 and staged',
    organizationId,
  );
  test.equal(staged.length, 1);
  test.match(await claimed(jobs, second), { mode: 'tail', cursor: 5 });
});

t.test('what a tail begins anew leaves what a rescan has seen', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createConnector(sql, org);
  const modes = [
    { mode: 'tail', dueInSeconds: 3_600 },
    { mode: 'rescan', dueInSeconds: 0 },
  ];
  await putSources(jobs, await claimed(jobs, place), [found('a', { modes })]);
  const scan = await claimed(jobs, place);
  test.equal(scan.mode, 'rescan');
  await commit(jobs, scan, { cursor: 1, segments: [segment('2026-01', { staged: true })] });
  const count = async () =>
    (await rows('select id from app.insight_segments where organization_id = $1 and staged', org.organizationId))
      .length;
  await passTime(sql, place);
  await fail(jobs, await claimed(jobs, place), { code: 'cursor_moved' }, { restart: { cursor: null } });
  test.equal(await count(), 1, 'the tail began anew');
  await commit(jobs, await claimed(jobs, place), { done: true, dropStaged: true });
  test.equal(await count(), 0, 'the scan is done');
});

t.test('a limit behind good pages is no failure, and success of a source none of the search for them', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  await sql.owner.query('update app.insight_connectors set failure_count = 4 where integration_id = $1', [
    place.integrationId,
  ]);
  const error = { code: 'throttled', message: 'wait', isOurs: true };
  await commit(jobs, await claimed(jobs, place), { cursor: 1, segments: [segment()], error });
  test.match(await sourcesOf(org), [{ failure_count: 0, last_error: { code: 'throttled', message: 'wait' } }]);
  test.match(await connectorOf(place), { failure_count: 4 });
});
