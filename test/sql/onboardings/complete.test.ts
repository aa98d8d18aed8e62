import { randomUUID } from 'node:crypto';
import t from 'tap';
import { canonicalSha256 } from '../../../engine/canonical_json.ts';
import { cancelMessage, claimTurn, createChat, send, startTurn } from '../../support/chat_fixtures.ts';
import { document, insertSource, markSource } from '../../support/context_fixtures.ts';
import { updateOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  complete,
  finish,
  type Onboarding,
  onboardingIn,
  organizationOf,
  page,
  placeOf,
  publishCatalog,
  putDisposition,
  read,
  step,
} from '../../support/onboarding_fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
await publishCatalog(sql);

scenario('the review is the digest of its canonical JSON, and follows each change', async (test) => {
  const review = await onboardingIn(sql, 'review', { name: 'Grüße "\\\n\u0007 日本 😀' });
  const org = placeOf(review);
  const digest = ({ review }: Onboarding) => canonicalSha256({ summary: review?.summary, warnings: review?.warnings });
  test.equal(review.review?.sha256, digest(review));
  test.same(review.review?.warnings, []);
  const decided = await putDisposition(sql, review, 'crm', 'unknown', ['growth']);
  test.equal(decided.review?.sha256, digest(decided));
  test.not(decided.review?.sha256, review.review?.sha256);
  test.match(decided.review?.warnings, [{ code: 'integration_undecided' }]);
  test.same(
    await putDisposition(sql, decided, 'crm', 'unknown', ['growth']),
    decided,
    'the same again changes nothing',
  );
  const settled = await putDisposition(sql, decided, 'crm', 'not_used');
  test.same(settled.review?.warnings, []);
  const none = await step(sql.api, org, 'setup_update', {
    expectedGeneration: settled.generation,
    patch: { departments: [] },
  });
  test.match(none.review?.warnings, [{ code: 'no_departments' }]);
  const [source] = none.sources;
  await markSource(sql.jobs, { ...org, profileId: '', profileKey: '' }, String(source?.id), 'failed', {
    code: 'bytes_missing',
    message: 'is no longer stored',
  });
  const stale = await refusal(complete(sql.api, org, none, { allowWarnings: true }));
  test.match(stale, { status: 409, reason: 'stale' });
  const shown = await read(sql, org);
  test.match(shown.review?.warnings, [{ code: 'no_departments' }, { code: 'source_failed' }]);
  test.match(await refusal(complete(sql.api, org, shown)), { status: 409, reason: 'has_warnings' });
  test.match(await complete(sql.api, org, shown, { allowWarnings: true }), { status: 'completed' });
});

scenario('another website takes away what was read of the old one; other sources start anew', async (test) => {
  const started = await onboardingIn(sql, 'researching', { website: 'https://x.example/' });
  const org = placeOf(started);
  const args = { organizationId: org.organizationId, generation: started.generation, source: page('/') };
  const { source } = (await transition(sql.jobs, 'onboarding_evidence_add', args)) as { source: { id: string } };
  const findings = [{ claim: 'They make lamps', evidence: [source.id] }];
  const review = await finish(sql, org, started.generation, {
    status: 'completed',
    findings,
    warnings: [{ code: 'x', message: 'y' }],
  });
  if (!review) throw new Error('no review');
  test.match(review.review, { warnings: [{ code: 'x' }], summary: { evidence: [{ id: source.id }] } });
  const result = await transition(sql.api, 'onboarding_setup_update', {
    organizationId: org.organizationId,
    expectedGeneration: review.generation,
    patch: { website: 'https://y.example/' },
  });
  test.match(result, { onboarding: { status: 'collecting', review: null, findings: [], research_warnings: [] } });
  test.equal((result['removedKeys'] as string[]).length, 1);
  const { rows } = await sql.owner.query(
    `select id from app.context_sources where organization_id = $1 and origin = 'research'`,
    [org.organizationId],
  );
  test.same(rows, []);

  const other = await onboardingIn(sql, 'review');
  const removed = await step(sql.api, placeOf(other), 'source_delete', { sourceId: other.sources[0]?.id });
  test.match(removed, { status: 'collecting', sources: [], review: null });
  const gone = refusal(step(sql.api, placeOf(other), 'source_delete', { sourceId: other.sources[0]?.id }));
  test.match(await gone, { status: 404, code: 'request_failed', reason: 'not_found' });
});

scenario('the completion does everything, or nothing', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const org = placeOf(review);
  const wrong = refusal(complete(sql.api, org, review, { reviewSha256: '0'.repeat(64) }));
  test.match(await wrong, { status: 409, code: 'request_failed', reason: 'stale', raised: true });
  const missing = [{ scope: 'organization', documents: [document('a.json', { sourceIds: [randomUUID()] })] }];
  const failing = complete(sql.api, org, review, { documents: missing });
  test.match(await refusal(failing), { status: 400, reason: 'unknown_source' });
  test.match(await organizationOf(sql, review), { status: 'onboarding', onboarded_at: null });
  test.same(await read(sql, org), review);
  const look = await complete(sql.api, org, review, { documents: null });
  test.same(look, review, 'a look changes nothing');

  const documents = [
    { scope: 'organization', documents: [document('facts.json')] },
    { scope: 'growth', documents: [document('sources.json', { sourceIds: [review.sources[0]?.id] })] },
  ];
  const done = await complete(sql.api, org, review, { documents });
  test.match(done, { status: 'completed', review: { sha256: review.review?.sha256 } });
  const organization = await organizationOf(sql, review);
  test.match(organization, { status: 'active', work_dispatch_stopped_at: null });
  test.ok(organization.onboarded_at);
  const { rows: profiles } = await sql.owner.query(
    'select key from app.agent_profiles where organization_id = $1 order by key',
    [org.organizationId],
  );
  test.same(
    profiles.map(({ key }) => key),
    ['chat', 'growth', 'operator'],
  );
  const { rows: published } = await sql.owner.query(
    'select scope, revision from app.context_publications where organization_id = $1 order by scope',
    [org.organizationId],
  );
  test.same(published, [
    { scope: 'growth', revision: 1 },
    { scope: 'organization', revision: 1 },
  ]);
});

scenario('the onboarding chat runs until the completion, which waits for no reply', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const org = { ...placeOf(review), profileId: '', profileKey: 'chat' };
  const chatId = String(review.chat_id);
  const { assistantMessage } = await send(sql.api, org, chatId);
  test.match(await refusal(complete(sql.api, org, review)), { status: 409, reason: 'reply_active' });
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  test.equal(turn.messageId, assistantMessage.id, 'its turns run while the organization is onboarding');
  await cancelMessage(sql.api, org, assistantMessage);
  const cancelling = await refusal(complete(sql.api, org, review));
  test.match(cancelling, { status: 409, reason: 'reply_active', message: /is being cancelled.*lease/ });
  await transition(sql.api, 'run_complete', {
    organizationId: org.organizationId,
    runId: turn.runId,
    leaseToken: turn.leaseToken,
    bodyHash: 'a',
    result: { kind: 'chat_message', parts: [{ kind: 'text', text: 'Done' }] },
    report: {},
    checks: null,
    evaluationDigest: null,
  });
  await complete(sql.api, org, review);
  const immutable = { status: 409, code: 'onboarding_chat_immutable' };
  test.match(await refusal(send(sql.api, org, chatId)), immutable);
  await updateOrganization(sql.api, org, { onboardedAt: null });
  test.match(await refusal(send(sql.api, org, chatId)), immutable, 'whatever onboardedAt is set to');
  const chat = await createChat(sql, org);
  test.ok((await send(sql.api, org, chat.id)).userMessage, 'other chats go on');
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
  test.match(await completing, { reason: 'reply_active' });
});

scenario('sources that nobody has judged yet hold the completion up', async (test) => {
  const review = await onboardingIn(sql, 'review');
  const org = { ...placeOf(review), profileId: '', profileKey: '' };
  const source = await insertSource(sql, org, { origin: 'chat', status: 'stored' });
  test.match(await refusal(complete(sql.api, org, review)), { status: 409, reason: 'being_read' });
  await markSource(sql.jobs, org, source.id, 'ingested');
  test.match(await complete(sql.api, org, review), { status: 'completed' });
});
