import { randomUUID } from 'node:crypto';
import t from 'tap';
import { canonicalSha256 } from '../../../engine/canonical_json.ts';
import { chatRow, claimTurn, createChat, send, startTurn } from '../../support/chat_fixtures.ts';
import { document, insertSource, markSource } from '../../support/context_fixtures.ts';
import { createTask, updateOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  complete,
  createOnboarding,
  FAILURE,
  finish,
  type Onboarding,
  onboardingIn,
  placeOf,
  publishCatalog,
  putSource,
  read,
  step,
} from '../../support/onboarding_fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
await publishCatalog(sql);

const STATES = ['collecting', 'researching', 'research_failed', 'review', 'completed', 'discarded'] as const;

async function organizationOf(onboarding: Onboarding) {
  const { rows } = await sql.owner.query('select * from app.organizations where id = $1', [onboarding.organization_id]);
  return rows[0];
}

/** Each operation, as it is permitted by its generation and digest. */
const OPERATIONS: Readonly<Record<string, (o: Onboarding) => Promise<unknown>>> = {
  discard: (o) => step(sql.api, placeOf(o), 'discard'),
  setup: (o) =>
    step(sql.api, placeOf(o), 'setup_update', {
      p_expected_generation: o.generation,
      p_patch: { summary: 'Lamps' },
    }),
  disposition: (o) => disposition(o, 'crm', 'connect_later'),
  put: (o) => putSource(sql.api, placeOf(o)),
  start: (o) => step(sql.api, placeOf(o), 'start'),
  retry: (o) => step(sql.api, placeOf(o), 'research_retry', { p_expected_generation: o.generation }),
  complete: (o) => complete(sql.api, placeOf(o), o),
};

function disposition(o: Onboarding, key: string, value: string, departments: string[] = []) {
  return step(sql.api, placeOf(o), 'disposition_put', {
    p_expected_generation: o.generation,
    p_integration_key: key,
    p_disposition: value,
    p_departments: JSON.stringify(departments),
  });
}

/** What each state permits, and where it leads (design/decisions.md 9). */
const TABLE: Readonly<Record<(typeof STATES)[number], Readonly<Record<string, string>>>> = {
  collecting: {
    discard: 'discarded',
    setup: 'collecting',
    disposition: 'collecting',
    put: 'collecting',
    start: 'researching',
  },
  researching: { discard: 'discarded' },
  research_failed: {
    discard: 'discarded',
    setup: 'research_failed',
    disposition: 'research_failed',
    put: 'research_failed',
    start: 'researching',
    retry: 'researching',
  },
  review: { discard: 'discarded', setup: 'review', disposition: 'review', put: 'collecting', complete: 'completed' },
  completed: {},
  discarded: {},
};

for (const state of STATES) {
  scenario(`${state}: what is permitted, and where it leads`, async (test) => {
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      const next = TABLE[state][name];
      const onboarding = await onboardingIn(sql, state);
      if (next !== undefined) {
        const after = (await operation(onboarding)) as Onboarding;
        test.equal(after.status, next, name);
        test.equal(after.generation, onboarding.generation + 1);
        continue;
      }
      const refused = await refusal(operation(onboarding));
      test.match(refused, { status: state === 'discarded' ? 404 : 409, code: 'request_failed', raised: true }, name);
      if (state !== 'discarded') test.same(await read(sql, placeOf(onboarding)), onboarding, 'nothing changed');
    }
  });
}

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
  const organization = await organizationOf(onboarding);
  test.match(organization, { status: 'onboarding', onboarded_at: null, name: 'Acme' });
  test.ok(organization.work_dispatch_stopped_at);
  test.match(organization.config.departments, { growth: { enabled: true }, support: { enabled: false } });
  const provisioned = await transition(sql.api, 'agent_profiles_provision', {
    p_organization_id: onboarding.organization_id,
    p_departments: ['growth'],
    p_revision: null,
  });
  const [operator] = provisioned['agent_profiles'] as { id: string; key: string }[];
  const place = { ...placeOf(onboarding), profileId: operator?.id ?? '', profileKey: operator?.key ?? '' };
  const task = await createTask(sql, place);
  const states = async () =>
    (
      await sql.owner.query('select state from app.run_requests where organization_id = $1 and task_id = $2', [
        place.organizationId,
        task.id,
      ])
    ).rows;
  test.same(await states(), [{ state: 'queued' }]);
  const started = await step(sql.api, place, 'start');
  const review = await finish(sql, place, started.generation);
  if (review) await complete(sql.api, place, review, { p_allow_warnings: true });
  test.same(await states(), [{ state: 'published' }], 'until the completion');
});

scenario(
  'slugs: the given one or none; derived ones get numbers, or digits where the name leaves nothing',
  async (test) => {
    const base = `s-${randomUUID().slice(0, 8)}`;
    const slugs: string[] = [];
    for (let made = 0; made < 3; made += 1) {
      slugs.push((await organizationOf(await createOnboarding(sql, { slugBase: base }))).slug);
    }
    test.same(slugs, [base, `${base}-2`, `${base}-3`]);
    test.match((await organizationOf(await createOnboarding(sql, { slugBase: '' }))).slug, /^org-[0-9a-f]{12}$/);
    const given = await transition(sql.api, 'onboarding_create', {
      p_fields: { name: 'A', slug: `${base}-x`, timezone: 'UTC', departments: [] },
      p_subject: 'me',
    });
    test.ok(given['onboarding']);
    const again = transition(sql.api, 'onboarding_create', {
      p_fields: { name: 'A', slug: `${base}-x`, timezone: 'UTC', departments: [] },
      p_subject: null,
    });
    test.match(await refusal(again), { status: 409, code: 'request_failed', reason: 'in_use' });
    const long = 'x'.repeat(58);
    await createOnboarding(sql, { slugBase: long });
    test.equal((await organizationOf(await createOnboarding(sql, { slugBase: long }))).slug, `${long}-2`);

    const many = await Promise.all(Array.from({ length: 8 }, () => createOnboarding(sql, { slugBase: `${base}-m` })));
    const taken = await Promise.all(many.map(async (one) => (await organizationOf(one)).slug));
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
  const place = placeOf(started);
  const profiles = async () =>
    (
      await sql.owner.query('select kind, status from app.agent_profiles where organization_id = $1 order by kind', [
        place.organizationId,
      ])
    ).rows;
  test.same(await profiles(), [{ kind: 'chat', status: 'enabled' }]);
  test.match(started, { research_status: 'queued', research_attempts: 1 });
  await finish(sql, place, started.generation, FAILURE);
  const again = await step(sql.api, place, 'start');
  test.match(again, { chat_id: started.chat_id, research_attempts: 2, research_error: null });
  test.match(await chatRow(sql, { ...place, profileId: '', profileKey: '' }, String(started.chat_id)), {
    is_onboarding: true,
    status: 'open',
  });
  test.same(await profiles(), [{ kind: 'chat', status: 'enabled' }]);
  const { rows } = await sql.owner.query(
    `select j.payload from graphile_worker._private_jobs j where j.payload ->> 'organizationId' = $1
       and j.payload ->> 'generation' is not null`,
    [place.organizationId],
  );
  test.same(
    rows.map((row) => row.payload.generation),
    [again.generation],
    'the job carries the newest attempt',
  );
});

scenario('the research of an attempt that is over writes nothing', async (test) => {
  const first = await onboardingIn(sql, 'researching');
  const place = placeOf(first);
  await finish(sql, place, first.generation, FAILURE);
  const second = await step(sql.api, place, 'start');
  test.equal(await finish(sql, place, first.generation), null);
  const stale = { p_organization_id: place.organizationId, p_generation: first.generation };
  test.same(await transition(sql.jobs, 'onboarding_research_begin', stale), { onboarding: null });
  test.same(await transition(sql.jobs, 'onboarding_evidence_add', { ...stale, p_source: page('/') }), { source: null });
  test.same(await read(sql, place), second);
  const current = { ...stale, p_generation: second.generation };
  const begun = await step(sql.jobs, place, 'research_begin', { p_generation: second.generation });
  test.match(begun, { research_status: 'running', generation: second.generation });
  test.same(await step(sql.jobs, place, 'research_begin', { p_generation: second.generation }), {
    ...begun,
    updated_at: (await read(sql, place))['updated_at'],
  });
  const { source } = (await transition(sql.jobs, 'onboarding_evidence_add', { ...current, p_source: page('/') })) as {
    source: { id: string };
  };
  const again = await transition(sql.jobs, 'onboarding_evidence_add', { ...current, p_source: page('/') });
  test.match(again, { source: { id: source.id } }, 'a page that is read twice is one source');
  const findings = [{ claim: 'They make lamps', evidence: [source.id] }];
  const review = await finish(sql, place, second.generation, { status: 'completed', findings });
  test.match(review, { status: 'review', findings: [{ claim: 'They make lamps', source_ids: [source.id] }] });
  test.equal(await finish(sql, place, second.generation), null, 'a repeat too');
  const discarded = await onboardingIn(sql, 'researching');
  await step(sql.api, placeOf(discarded), 'discard');
  test.equal(await finish(sql, placeOf(discarded), discarded.generation), null);
});

function page(path: string) {
  return {
    status: 'ingested',
    kind: 'page',
    fileName: 'page.md',
    mediaType: 'text/markdown',
    sizeBytes: 4,
    sha256: '0'.repeat(64),
    storageKey: `sources/${randomUUID()}`,
    provenanceUrls: [`https://x.example${path}`],
    dedupeKey: `https://x.example${path}`,
  };
}

scenario('a claim cites what the organization has', async (test) => {
  const started = await onboardingIn(sql, 'researching');
  const findings = [{ claim: 'x', evidence: [randomUUID()] }];
  const refused = await refusal(finish(sql, placeOf(started), started.generation, { status: 'completed', findings }));
  test.match(refused, { status: 400, code: 'request_failed', reason: 'unknown_source' });
});

scenario('the review is the digest of its canonical JSON, and follows each change', async (test) => {
  const review = await onboardingIn(sql, 'review', { name: 'Grüße "\\\n\u0007 日本 😀' });
  const place = placeOf(review);
  const digest = ({ review }: Onboarding) => canonicalSha256({ summary: review?.summary, warnings: review?.warnings });
  test.equal(review.review?.sha256, digest(review));
  test.same(review.review?.warnings, []);
  const decided = await disposition(review, 'crm', 'unknown', ['growth']);
  test.equal(decided.review?.sha256, digest(decided));
  test.not(decided.review?.sha256, review.review?.sha256);
  test.match(decided.review?.warnings, [{ code: 'integration_undecided' }]);
  test.same(await disposition(decided, 'crm', 'unknown', ['growth']), decided, 'the same again changes nothing');
  const settled = await disposition(decided, 'crm', 'not_used');
  test.same(settled.review?.warnings, []);
  const none = await step(sql.api, place, 'setup_update', {
    p_expected_generation: settled.generation,
    p_patch: { departments: [] },
  });
  test.match(none.review?.warnings, [{ code: 'no_departments' }]);
  const [source] = none.sources;
  await markSource(sql.jobs, { ...place, profileId: '', profileKey: '' }, String(source?.id), 'failed', {
    code: 'bytes_missing',
    message: 'is no longer stored',
  });
  const stale = await refusal(complete(sql.api, place, none, { p_allow_warnings: true }));
  test.match(stale, { status: 409, reason: 'stale', raised: false });
  const shown = await read(sql, place);
  test.match(shown.review?.warnings, [{ code: 'no_departments' }, { code: 'source_failed' }]);
  test.match(await refusal(complete(sql.api, place, shown)), { status: 409, reason: 'has_warnings' });
  test.match(await complete(sql.api, place, shown, { p_allow_warnings: true }), { status: 'completed' });
});

scenario('another website takes away what was read of the old one; other sources start anew', async (test) => {
  const started = await onboardingIn(sql, 'researching', { website: 'https://x.example/' });
  const place = placeOf(started);
  const args = { p_organization_id: place.organizationId, p_generation: started.generation, p_source: page('/') };
  const { source } = (await transition(sql.jobs, 'onboarding_evidence_add', args)) as { source: { id: string } };
  const findings = [{ claim: 'They make lamps', evidence: [source.id] }];
  const review = await finish(sql, place, started.generation, {
    status: 'completed',
    findings,
    warnings: [{ code: 'x', message: 'y' }],
  });
  if (!review) throw new Error('no review');
  test.match(review.review, { warnings: [{ code: 'x' }], summary: { evidence: [{ id: source.id }] } });
  const answer = await transition(sql.api, 'onboarding_setup_update', {
    p_organization_id: place.organizationId,
    p_expected_generation: review.generation,
    p_patch: { website: 'https://y.example/' },
  });
  test.match(answer, { onboarding: { status: 'collecting', review: null, findings: [], research_warnings: [] } });
  test.equal((answer['removedKeys'] as string[]).length, 1);
  const { rows } = await sql.owner.query(
    `select id from app.context_sources where organization_id = $1 and origin = 'research'`,
    [place.organizationId],
  );
  test.same(rows, []);

  const other = await onboardingIn(sql, 'review');
  const removed = await step(sql.api, placeOf(other), 'source_delete', { p_source_id: other.sources[0]?.id });
  test.match(removed, { status: 'collecting', sources: [], review: null });
  const gone = refusal(step(sql.api, placeOf(other), 'source_delete', { p_source_id: other.sources[0]?.id }));
  test.match(await gone, { status: 404, code: 'request_failed', reason: 'not_found' });
});

scenario('a source is what was put first', async (test) => {
  const onboarding = await createOnboarding(sql);
  const place = placeOf(onboarding);
  const id = randomUUID();
  const put = await putSource(sql.api, place, { id });
  test.match(put.sources, [{ id, status: 'ingested' }]);
  test.same(await putSource(sql.api, place, { id }), put, 'the same again changes nothing');
  for (const fields of [{ sha256: '1'.repeat(64) }, { fileName: 'b.md' }, { department: 'growth' }, { kind: 'file' }]) {
    const refused = await refusal(putSource(sql.api, place, { id, ...fields }));
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
  const foreign = step(sql.api, placeOf(other), 'source_delete', { p_source_id: onboarding.sources[0]?.id });
  test.match(await refusal(foreign), { status: 404, code: 'request_failed' });
  test.same(await read(sql, placeOf(onboarding)), onboarding);
});

scenario('the completion does everything, or nothing', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const place = placeOf(review);
  const wrong = refusal(complete(sql.api, place, review, { p_review_sha256: '0'.repeat(64) }));
  test.match(await wrong, { status: 409, code: 'request_failed', reason: 'stale', raised: true });
  const missing = [{ scope: 'organization', documents: [document('a.json', { sourceIds: [randomUUID()] })] }];
  const failing = complete(sql.api, place, review, { p_documents: JSON.stringify(missing) });
  test.match(await refusal(failing), { status: 400, reason: 'unknown_source' });
  test.match(await organizationOf(review), { status: 'onboarding', onboarded_at: null });
  test.same(await read(sql, place), review);
  const look = await complete(sql.api, place, review, { p_documents: null });
  test.same(look, review, 'a look changes nothing');

  const documents = [
    { scope: 'organization', documents: [document('facts.json')] },
    { scope: 'growth', documents: [document('sources.json', { sourceIds: [review.sources[0]?.id] })] },
  ];
  const done = await complete(sql.api, place, review, { p_documents: JSON.stringify(documents) });
  test.match(done, { status: 'completed', review: { sha256: review.review?.sha256 } });
  const organization = await organizationOf(review);
  test.match(organization, { status: 'active', work_dispatch_stopped_at: null });
  test.ok(organization.onboarded_at);
  const { rows: profiles } = await sql.owner.query(
    'select key from app.agent_profiles where organization_id = $1 order by key',
    [place.organizationId],
  );
  test.same(
    profiles.map(({ key }) => key),
    ['chat', 'growth', 'operator'],
  );
  const { rows: published } = await sql.owner.query(
    'select scope, revision from app.context_publications where organization_id = $1 order by scope',
    [place.organizationId],
  );
  test.same(published, [
    { scope: 'growth', revision: 1 },
    { scope: 'organization', revision: 1 },
  ]);
});

scenario('the onboarding chat runs until the completion, which waits for no answer', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const place = { ...placeOf(review), profileId: '', profileKey: 'chat' };
  const chatId = String(review.chat_id);
  const { assistantMessage } = await send(sql.api, place, chatId);
  test.match(await refusal(complete(sql.api, place, review)), { status: 409, reason: 'answer_active' });
  const turn = await startTurn(sql.api, await claimTurn(sql, place));
  test.equal(turn.messageId, assistantMessage.id, 'its turns run while the organization is onboarding');
  await transition(sql.api, 'run_complete', {
    p_organization_id: place.organizationId,
    p_run_id: turn.runId,
    p_lease_token: turn.leaseToken,
    p_body_hash: 'a',
    p_result: { kind: 'chat_message', parts: [{ kind: 'text', text: 'Done' }] },
    p_report: {},
    p_checks: null,
    p_judged: null,
  });
  await complete(sql.api, place, review);
  const immutable = { status: 409, code: 'onboarding_chat_immutable' };
  test.match(await refusal(send(sql.api, place, chatId)), immutable);
  await updateOrganization(sql.api, place, { onboardedAt: null });
  test.match(await refusal(send(sql.api, place, chatId)), immutable, 'whatever onboardedAt is set to');
  const chat = await createChat(sql, place);
  test.ok((await send(sql.api, place, chat.id)).userMessage, 'other chats go on');
});

scenario('a message waits for the completion and is refused; a completion waits for a message and is', async (test) => {
  const first = await onboardingIn(sql, 'review');
  const second = await onboardingIn(sql, 'review');
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  const at = (o: Onboarding) => ({ ...placeOf(o), profileId: '', profileKey: 'chat' });

  await session.begin();
  await complete(session, at(first), first);
  const sending = refusal(send(rival, at(first), String(first.chat_id)));
  await rival.waits();
  await session.commit();
  test.match(await sending, { code: 'onboarding_chat_immutable' });

  await session.begin();
  await send(session, at(second), String(second.chat_id));
  const completing = refusal(complete(rival, at(second), second));
  await rival.waits();
  await session.commit();
  test.match(await completing, { reason: 'answer_active' });
});

scenario('two at once: one wins', async (test) => {
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  const both = async (onboarding: Onboarding, name: string, args: Record<string, unknown>) => {
    await session.begin();
    await step(session, placeOf(onboarding), name, args);
    const second = refusal(step(rival, placeOf(onboarding), name, args));
    await rival.waits();
    await session.commit();
    return second;
  };
  test.match(await both(await onboardingIn(sql, 'collecting'), 'start', {}), { status: 409, reason: 'not_permitted' });
  const failed = await onboardingIn(sql, 'research_failed');
  const retry = await both(failed, 'research_retry', { p_expected_generation: failed.generation });
  test.match(retry, { status: 409, reason: 'stale' });
  const review = await onboardingIn(sql, 'review');
  const completion = await both(review, 'complete', {
    p_review_sha256: review.review?.sha256,
    p_allow_warnings: false,
    p_documents: JSON.stringify([{ scope: 'organization', documents: [document('facts.json')] }]),
  });
  test.match(completion, { status: 409, reason: 'not_permitted' });
  test.match(await both(await onboardingIn(sql, 'review'), 'discard', {}), { status: 404, code: 'request_failed' });
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

scenario('sources that nobody has judged yet hold the completion up', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const place = { ...placeOf(review), profileId: '', profileKey: '' };
  const source = await insertSource(sql, place, { origin: 'chat', status: 'stored' });
  test.match(await refusal(complete(sql.api, place, review)), { status: 409, reason: 'being_read' });
  await markSource(sql.jobs, place, source.id, 'ingested');
  test.match(await complete(sql.api, place, review), { status: 'completed' });
});
