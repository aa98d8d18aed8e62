import { randomUUID } from 'node:crypto';
import t from 'tap';
import { chatRow } from '../../support/chat_fixtures.ts';
import { document } from '../../support/context_fixtures.ts';
import {
  createProfile,
  createTask,
  dispatchAll,
  insertOrganization,
  lastRequest,
  setWorkDispatch,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  complete,
  createOnboarding,
  FAILURE,
  finish,
  type GivenToStep,
  type Onboarding,
  onboardingIn,
  organizationOf,
  page,
  placeOf,
  publishCatalog,
  putSource,
  read,
  type Step,
  step,
} from '../../support/onboarding_fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';
import { operationsOn } from './operations.ts';

const sql = await openSql(t);
const OPERATIONS = operationsOn(sql);
const scenario = scenarios(t, sql);
await publishCatalog(sql);

scenario('an onboarding begins with its organization, whose tasks wait', async (test) => {
  const onboarding = await createOnboarding(sql, { defaultCurrency: 'EUR', website: 'https://x.example/' });
  test.match(onboarding, {
    status: 'collecting',
    generation: 1,
    setup: {
      name: 'Acme',
      website: 'https://x.example/',
      timezone: 'UTC',
      defaultCurrency: 'EUR',
      departments: ['growth'],
      summary: null,
    },
    sources: [],
    integrations: [],
    chat_id: null,
    research_status: 'not_started',
    findings: [],
    review: null,
  });
  const organization = await organizationOf(sql, onboarding);
  test.match(organization, { status: 'onboarding', onboarded_at: null, name: 'Acme' });
  test.equal(organization.work_dispatch_stopped_at, null, 'that is its owner’s');
  test.match(organization.config.departments, { growth: { enabled: true }, support: { enabled: false } });
  const provisioned = await transition(sql.api, 'agent_profiles_provision', {
    organizationId: onboarding.organization_id,
    departments: ['growth'],
    revision: null,
  });
  const [operator] = provisioned['agent_profiles'] as { id: string; key: string }[];
  const org = { ...placeOf(onboarding), profileId: operator?.id ?? '', profileKey: operator?.key ?? '' };
  const task = await createTask(sql, org);
  const states = async () =>
    (
      await sql.owner.query('select state from app.run_requests where organization_id = $1 and task_id = $2', [
        org.organizationId,
        task.id,
      ])
    ).rows;
  test.same(await states(), [{ state: 'queued' }]);
  const resumed = await setWorkDispatch(sql.api, org, false);
  test.match(resumed, { organization: { work_dispatch_stopped_at: null }, published_run_requests: 0 });
  await dispatchAll(sql);
  test.same(await states(), [{ state: 'queued' }], 'its owner cannot lift it');
  await updateOrganization(sql.api, org, { status: 'suspended' });
  await updateOrganization(sql.api, org, { status: 'onboarding' });
  test.same(await states(), [{ state: 'queued' }], 'a suspension neither');
  const started = await step(sql.api, org, 'start');
  const review = await finish(sql, org, started.generation);
  if (review) await complete(sql.api, org, review, { allowWarnings: true });
  test.same(await states(), [{ state: 'published' }], 'until the completion');
});

scenario('a stop of the owner outlasts the completion', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const org = placeOf(review);
  const stopped = await setWorkDispatch(sql.api, org, true);
  test.match(stopped, { organization: { work_dispatch_stopped_at: String }, published_run_requests: 0 });
  await complete(sql.api, org, review, { allowWarnings: true });
  const { status, work_dispatch_stopped_at: since } = await organizationOf(sql, review);
  test.equal(status, 'active');
  test.ok(since);
  const { rows } = await sql.owner.query(
    'select kind, stopped from app.dispatch where organization_id = $1 order by kind',
    [org.organizationId],
  );
  test.same(rows, [
    { kind: 'chat', stopped: false },
    { kind: 'task', stopped: true },
  ]);
});

scenario('an organization that is onboarded elsewhere dispatches once it is active', async (test) => {
  const made = randomUUID();
  await insertOrganization(sql.api, made, { slug: `s-${made}`, name: 'Elsewhere', status: 'onboarding' });
  const { id, key } = await createProfile(sql, made);
  const org = { organizationId: made, profileId: id, profileKey: key };
  const task = await createTask(sql, org);
  test.match(await lastRequest(sql, org, task.id), { state: 'queued', parked: true });
  await updateOrganization(sql.api, org, { status: 'active' });
  test.match(await lastRequest(sql, org, task.id), { state: 'published', parked: false });
});

scenario(
  'slugs: the given one or none; derived ones get numbers, or digits where the name leaves nothing',
  async (test) => {
    const base = `s-${randomUUID().slice(0, 8)}`;
    const slugs: string[] = [];
    for (let made = 0; made < 3; made += 1) {
      slugs.push((await organizationOf(sql, await createOnboarding(sql, { slugBase: base }))).slug);
    }
    test.same(slugs, [base, `${base}-2`, `${base}-3`]);
    test.match((await organizationOf(sql, await createOnboarding(sql, { slugBase: '' }))).slug, /^org-[0-9a-f]{12}$/);
    const given = await transition(sql.api, 'onboarding_create', {
      fields: { name: 'A', slug: `${base}-x`, timezone: 'UTC', departments: [] },
      subject: 'me',
    });
    test.ok(given['onboarding']);
    const again = transition(sql.api, 'onboarding_create', {
      fields: { name: 'A', slug: `${base}-x`, timezone: 'UTC', departments: [] },
      subject: null,
    });
    test.match(await refusal(again), { status: 409, code: 'request_failed', reason: 'in_use' });
    const long = 'x'.repeat(58);
    await createOnboarding(sql, { slugBase: long });
    test.equal((await organizationOf(sql, await createOnboarding(sql, { slugBase: long }))).slug, `${long}-2`);

    const many = await Promise.all(Array.from({ length: 8 }, () => createOnboarding(sql, { slugBase: `${base}-m` })));
    const taken = await Promise.all(many.map(async (one) => (await organizationOf(sql, one)).slug));
    test.equal(new Set(taken).size, 8, 'also when all come at once');
  },
);

scenario('every guarded call compares the generation', async (test) => {
  const failed = await onboardingIn(sql, 'research_failed');
  const stale = { ...failed, generation: failed.generation - 1 };
  for (const name of ['setup', 'disposition', 'retry']) {
    const refused = await refusal(OPERATIONS[name]?.(stale) ?? Promise.resolve());
    test.match(refused, { status: 409, code: 'request_failed', reason: 'stale' }, name);
  }
  test.same(await read(sql, placeOf(failed)), failed);
});

scenario('the start enables the chat profile alone, and opens the chat once', async (test) => {
  const started = await onboardingIn(sql, 'researching');
  const org = placeOf(started);
  const profiles = async () =>
    (
      await sql.owner.query('select kind, status from app.agent_profiles where organization_id = $1 order by kind', [
        org.organizationId,
      ])
    ).rows;
  test.same(await profiles(), [{ kind: 'chat', status: 'enabled' }]);
  test.match(started, { research_status: 'queued', research_attempts: 1 });
  await finish(sql, org, started.generation, FAILURE);
  const again = await step(sql.api, org, 'start');
  test.match(again, { chat_id: started.chat_id, research_attempts: 2, research_error: null });
  test.match(await chatRow(sql, { ...org, profileId: '', profileKey: '' }, String(started.chat_id)), {
    is_onboarding: true,
    status: 'open',
  });
  test.same(await profiles(), [{ kind: 'chat', status: 'enabled' }]);
  const { rows } = await sql.owner.query(
    `select j.payload from graphile_worker._private_jobs j where j.payload ->> 'organizationId' = $1
       and j.payload ->> 'generation' is not null`,
    [org.organizationId],
  );
  test.same(
    rows.map((row) => row.payload.generation),
    [again.generation],
    'the job carries the newest attempt',
  );
});

scenario('the research of an attempt that is over writes nothing', async (test) => {
  const first = await onboardingIn(sql, 'researching');
  const org = placeOf(first);
  await finish(sql, org, first.generation, FAILURE);
  const second = await step(sql.api, org, 'start');
  test.equal(await finish(sql, org, first.generation), null);
  const stale = { organizationId: org.organizationId, generation: first.generation };
  test.same(await transition(sql.jobs, 'onboarding_research_begin', stale), { onboarding: null });
  test.same(await transition(sql.jobs, 'onboarding_evidence_add', { ...stale, source: page('/') }), { source: null });
  test.same(await read(sql, org), second);
  const current = { ...stale, generation: second.generation };
  const begun = await step(sql.jobs, org, 'research_begin', { generation: second.generation });
  test.match(begun, { research_status: 'running', generation: second.generation });
  test.same(await step(sql.jobs, org, 'research_begin', { generation: second.generation }), {
    ...begun,
    updated_at: (await read(sql, org))['updated_at'],
  });
  const { source } = (await transition(sql.jobs, 'onboarding_evidence_add', { ...current, source: page('/') })) as {
    source: { id: string };
  };
  const again = await transition(sql.jobs, 'onboarding_evidence_add', { ...current, source: page('/') });
  test.match(again, { source: { id: source.id } }, 'a page that is read twice is one source');
  const findings = [{ claim: 'They make lamps', evidence: [source.id] }];
  const review = await finish(sql, org, second.generation, { status: 'completed', findings });
  test.match(review, { status: 'review', findings: [{ claim: 'They make lamps', source_ids: [source.id] }] });
  test.equal(await finish(sql, org, second.generation), null, 'a repeat too');
  const discarded = await onboardingIn(sql, 'researching');
  await step(sql.api, placeOf(discarded), 'discard');
  test.equal(await finish(sql, placeOf(discarded), discarded.generation), null);
});

scenario('a claim cites what the organization has', async (test) => {
  const started = await onboardingIn(sql, 'researching');
  const findings = [{ claim: 'x', evidence: [randomUUID()] }];
  const refused = await refusal(finish(sql, placeOf(started), started.generation, { status: 'completed', findings }));
  test.match(refused, { status: 400, code: 'request_failed', reason: 'unknown_source' });
});

scenario('a source is what was put first', async (test) => {
  const onboarding = await createOnboarding(sql);
  const org = placeOf(onboarding);
  const id = randomUUID();
  const put = await putSource(sql.api, org, { id });
  test.match(put.sources, [{ id, status: 'ingested' }]);
  test.same(await putSource(sql.api, org, { id }), put, 'the same again changes nothing');
  for (const fields of [{ sha256: '1'.repeat(64) }, { fileName: 'b.md' }, { department: 'growth' }, { kind: 'file' }]) {
    const refused = await refusal(putSource(sql.api, org, { id, ...fields }));
    test.match(refused, { status: 409, code: 'request_failed', reason: 'in_use' });
  }
});

scenario('another organization’s onboarding is not there', async (test) => {
  const onboarding = await onboardingIn(sql, 'review');
  const other = await createOnboarding(sql);
  const nowhere = { ...onboarding, organization_id: randomUUID() };
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    test.match(await refusal(operation(nowhere)), { status: 404, code: 'request_failed' }, name);
  }
  test.match(await refusal(read(sql, placeOf(nowhere))), { status: 404, code: 'request_failed' });
  const foreign = step(sql.api, placeOf(other), 'source_delete', { sourceId: onboarding.sources[0]?.id });
  test.match(await refusal(foreign), { status: 404, code: 'request_failed' });
  test.same(await read(sql, placeOf(onboarding)), onboarding);
});

scenario('two at once: one wins', async (test) => {
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  const both = async <S extends Step>(onboarding: Onboarding, name: S, ...given: GivenToStep<S>) => {
    await session.begin();
    await step(session, placeOf(onboarding), name, ...given);
    const second = refusal(step(rival, placeOf(onboarding), name, ...given));
    await rival.waits();
    await session.commit();
    return second;
  };
  test.match(await both(await onboardingIn(sql, 'collecting'), 'start'), { status: 409, reason: 'not_permitted' });
  const failed = await onboardingIn(sql, 'research_failed');
  const retry = await both(failed, 'research_retry', { expectedGeneration: failed.generation });
  test.match(retry, { status: 409, reason: 'stale' });
  const review = await onboardingIn(sql, 'review');
  const completion = await both(review, 'complete', {
    reviewSha256: review.review?.sha256,
    allowWarnings: false,
    documents: [{ scope: 'organization', documents: [document('facts.json')] }],
  });
  test.match(completion, { status: 409, reason: 'not_permitted' });
  test.match(await both(await onboardingIn(sql, 'review'), 'discard'), { status: 404, code: 'request_failed' });
});

scenario('a suspended organization is not started, retried or completed', async (test) => {
  for (const [state, name] of [
    ['collecting', 'start'],
    ['research_failed', 'retry'],
    ['review', 'complete'],
  ] as const) {
    const onboarding = await onboardingIn(sql, state);
    await updateOrganization(sql.api, placeOf(onboarding), { status: 'suspended' });
    const refused = await refusal(OPERATIONS[name]?.(onboarding) ?? Promise.resolve());
    test.match(refused, { status: 409, reason: 'suspended' }, name);
    const active = updateOrganization(sql.api, placeOf(onboarding), { status: 'active' });
    test.match(await refusal(active), { status: 409, code: 'state_conflict', reason: 'not_onboarded' });
    await updateOrganization(sql.api, placeOf(onboarding), { status: 'onboarding' });
    test.ok(await OPERATIONS[name]?.(onboarding));
  }
});

scenario('an organization whose onboarding is completed is not onboarding again', async (test) => {
  const org = placeOf(await onboardingIn(sql, 'completed'));
  const again = () => refusal(updateOrganization(sql.api, org, { status: 'onboarding' }));
  test.match(await again(), { status: 409, code: 'state_conflict', reason: 'no_onboarding' });
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await again(), { reason: 'no_onboarding' }, 'nor after a suspension');
});

scenario('a change of the organization is one of the setup, until the onboarding is completed', async (test) => {
  const patch = {
    name: 'Lamps',
    config: { timezone: 'Asia/Tokyo', departments: { growth: { enabled: false }, support: { enabled: true } } },
  };
  const setup = { name: 'Lamps', timezone: 'Asia/Tokyo', departments: ['support'] };
  for (const status of ['collecting', 'researching', 'research_failed', 'review'] as const) {
    const before = await onboardingIn(sql, status);
    const org = placeOf(before);
    await updateOrganization(sql.api, org, patch);
    const after = await read(sql, org);
    test.match(after, { status, setup, generation: before.generation + 1 }, status);
    await updateOrganization(sql.api, org, { ...patch, config: { limits: { maxTaskDepth: 3 } } });
    test.equal((await read(sql, org)).generation, after.generation, 'what it is changes nothing');
  }

  const review = await onboardingIn(sql, 'review');
  const org = placeOf(review);
  await updateOrganization(sql.api, org, patch);
  test.match(await refusal(complete(sql.api, org, review)), { status: 409, reason: 'stale' });
  const shown = await read(sql, org);
  test.match(shown.review?.summary, { setup });
  const kept = await step(sql.api, org, 'setup_update', {
    expectedGeneration: shown.generation,
    patch: { summary: 'Lamps, made to order' },
  });
  test.match(kept.setup, setup);
  await complete(sql.api, org, kept);
  const organization = await organizationOf(sql, review);
  test.match(organization, { name: 'Lamps', config: { ...patch.config, timezone: 'Asia/Tokyo' } });
  await updateOrganization(sql.api, org, { name: 'Lights' });
  test.match(await read(sql, org), { setup, status: 'completed' }, 'and what was confirmed stays');
});

scenario('a completion waits for a change of the organization, and finds another review', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const [session, rival] = [await openSession(test, sql), await openSession(test, sql)];
  await session.begin();
  await updateOrganization(session, placeOf(review), { name: 'Lamps' });
  const late = refusal(complete(rival, placeOf(review), review));
  await rival.waits();
  await session.commit();
  test.match(await late, { status: 409, reason: 'stale' });
  test.match(await organizationOf(sql, review), { name: 'Lamps', status: 'onboarding' });
});

scenario(
  'what the research found fits in beside the findings of the chat, or is left out with a warning',
  async (test) => {
    const started = await onboardingIn(sql, 'researching');
    const org = placeOf(started);
    const evidence = [String(started.sources[0]?.id)];
    const fill = (many: number) =>
      sql.owner.query(
        `insert into app.research_findings (organization_id, origin, claim, source_ids)
       select $1, 'chat', 'Said ' || n, $2 from generate_series(1, $3::integer) n`,
        [org.organizationId, JSON.stringify(evidence), many],
      );
    await fill(498);
    const claims = ['Said 1', 'First', 'Second', 'Third', 'Fourth'];
    const findings = claims.map((claim) => ({ claim, evidence }));
    const warnings = [{ code: 'x', message: 'y' }];
    const review = await finish(sql, org, started.generation, { status: 'completed', findings, warnings });
    test.equal(review?.findings.length, 500);
    test.same(
      review?.findings.filter(({ claim }) => !claim.startsWith('Said')).map(({ claim }) => claim),
      ['First', 'Second'],
    );
    test.match(review, { status: 'review', research_status: 'completed' });
    test.match(review?.review?.warnings, [
      { code: 'x' },
      { code: 'findings_left_out', message: /at most 500 findings: 2\.$/ },
    ]);
  },
);
