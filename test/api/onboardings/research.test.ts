import type { RequestListener } from 'node:http';
import t, { type Test } from 'tap';
import type { OnboardingResearch } from '../../../api/onboardings/research.ts';
import type { Onboarding } from '../../../api/onboardings/schema.ts';
import type { Config } from '../../../engine/config.ts';
import { openForbidden, openSite } from '../../engine/net/support.ts';
import { html } from '../../engine/website/support.ts';
import { expectSuccess, type Fields } from '../../support/api_fixtures.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import type { Client } from '../../support/http.ts';
import { openModel } from '../../support/model_server.ts';
import { runtimeOf, startTurn, type Turn } from '../chat_turns/turns.ts';
import { complete, create, get, inState, publish, start } from './support.ts';

const app = await startTestApp(t, { config: { allowPrivateAddresses: true } });
await publish(app);

const pathOf = ({ organizationId }: Pick<Onboarding, 'organizationId'>) =>
  `/internal/agent/organizations/${organizationId}/onboarding/research`;

type Asked = Readonly<{
  onboarding: Onboarding;
  turn: Turn;
  agent: Client;
  research: (body: Fields) => ReturnType<Client['post']>;
}>;

/** A turn under way in the onboarding chat, with what its agent may call. */
async function inChat(onboarding: Onboarding, on: TestApp = app): Promise<Asked> {
  const body = { author: { kind: 'human', displayName: 'Anna' }, parts: [{ kind: 'text', text: 'What do we cost?' }] };
  const messages = `/organizations/${onboarding.organizationId}/chats/${onboarding.chatId}/messages`;
  expectSuccess(await on.owner.post(messages, body), 202);
  const turn = await startTurn(on, onboarding as never);
  const agent = on.owner.as(turn.executionToken);
  return { onboarding, turn, agent, research: (given) => agent.post(pathOf(onboarding), given) };
}

const researched = (reply: Awaited<ReturnType<Asked['research']>>) =>
  expectSuccess(reply as Parameters<typeof expectSuccess<OnboardingResearch>>[0]);

const PAGES: Record<string, string> = {
  '/prices': html('Prices', [], 'Small: 9 €.'),
  '/team': html('Team', [], 'Ada and Grace.'),
};
const site: RequestListener = (req, res) => {
  const page = PAGES[req.url ?? ''];
  res.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
};

const stored = async (onboarding: Onboarding) =>
  (await app.services.storage.list(`organizations/${onboarding.organizationId}/`)).objects.length;

t.test('pages are kept as evidence, found again, and the review is computed anew', async (t) => {
  const { origin } = await openSite(t, site);
  const before = await inState(app, 'review');
  const { research } = await inChat(before);
  const urls = [`${origin}/prices`, `${origin}/prices#small`, `${origin}/nothing`];
  const first = researched(await research({ urls }));
  t.match(first, {
    evidence: [{ url: `${origin}/prices`, title: 'Prices', text: /Small: 9 €\./, truncated: false }],
    findings: [{ claim: `The title of ${new URL(origin).host}/prices is “Prices”.` }],
    failures: [{ url: `${origin}/nothing`, code: 'status' }],
    warnings: [],
    status: 'review',
  });
  t.same(first.findings[0]?.evidence, [first.evidence[0]?.sourceId]);
  const now = await get(app, before);
  t.match(now, { status: 'review', generation: first.generation, review: { sha256: first.reviewSha256 } });
  t.not(now.review?.sha256, before.review?.sha256);
  t.match(now.research.findings.at(-1), { claim: /Prices/, evidence: [first.evidence[0]?.sourceId] });
  t.match(now.review?.summary.evidence, [{ id: first.evidence[0]?.sourceId, urls: [`${origin}/prices`] }]);

  const files = await stored(before);
  const again = researched(await research({ urls: [`${origin}/prices`] }));
  t.equal(again.evidence[0]?.sourceId, first.evidence[0]?.sourceId);
  t.equal((await get(app, before)).research.findings.length, now.research.findings.length);
  t.equal(await stored(before), files, 'nothing is doubled');
});

t.test('evidence is served as the website sent it', async (t) => {
  const latin = Buffer.from(html('Café'), 'latin1');
  const { origin } = await openSite(t, (req, res) => {
    if (req.url === '/robots.txt') return void res.writeHead(404).end();
    res.setHeader('content-type', 'text/html; Charset=ISO-8859-1').end(latin);
  });
  const onboarding = await inState(app, 'review');
  const { evidence } = researched(await (await inChat(onboarding)).research({ urls: [origin] }));
  t.equal(evidence[0]?.title, 'Café');
  const path = `/organizations/${onboarding.organizationId}/context/sources/${evidence[0]?.sourceId}/content`;
  const content = await app.owner.fetch(path);
  t.equal(content.headers.get('x-media-type'), 'text/html; charset=iso-8859-1');
  t.same(Buffer.from(await content.arrayBuffer()), latin);
});

t.test('a model replies from the evidence, new and old', async (t) => {
  const { origin } = await openSite(t, site);
  const model = await openModel(t, ({ body }) => {
    const { evidence } = JSON.parse(body.messages[1]?.content ?? '');
    const claims = evidence.map(({ id, title }: { id: string; title?: string }) => ({
      claim: `${title ?? 'The plan'} is a document.`,
      evidence: [id],
    }));
    return JSON.stringify({ claims: [...claims, { claim: 'We are rich.', evidence: [] }] });
  });
  const config: Partial<Config> = {
    allowPrivateAddresses: true,
    researchModel: { url: model.url, model: 'small', key: undefined },
  };
  const asking = await startTestApp(t, { config, database: app.database });
  const { research } = await inChat(await inState(asking, 'review'), asking);
  const urls = researched(await research({ urls: [`${origin}/prices`] }));
  t.match(urls.findings, [{ claim: 'Prices is a document.', evidence: [urls.evidence[0]?.sourceId] }]);
  t.match(urls.warnings, [{ code: 'claims_without_evidence' }]);
  const question = researched(await research({ question: 'What is there?' }));
  t.same(question.evidence, []);
  t.same(question.findings.map(({ claim }) => claim).sort(), ['Prices is a document.', 'The plan is a document.']);
  t.equal(JSON.parse(model.requests[1]?.body.messages[1]?.content ?? '').question, 'What is there?');
});

t.test('no private address is asked, and blocked domains are not', async (t) => {
  const forbidden = await openForbidden(t);
  const strict = await startTestApp(t, { database: app.database });
  const onboarding = await inState(strict, 'review');
  const { research } = await inChat(onboarding, strict);
  const urls = ['127.0.0.1', '[::1]', '2130706433', 'localhost'].map((host) => `http://${host}:${forbidden.port}/`);
  const refused = researched(await research({ urls }));
  t.same(refused.evidence, []);
  // Two of the four are one address.
  t.same(
    refused.failures.map(({ code }) => code),
    ['address_refused', 'address_refused', 'address_refused'],
  );
  t.equal(forbidden.connections(), 0);
  t.equal(refused.generation, (await get(strict, onboarding)).generation);

  await strict.owner.patch(`/organizations/${onboarding.organizationId}`, {
    constraints: { blockedDomains: ['evil.example'] },
  });
  t.match(researched(await research({ urls: ['https://www.evil.example/'] })).failures, [{ code: 'blocked' }]);
});

function isRefused(t: Test, reply: { status: number; code: string | undefined }, status: number, code: string) {
  t.match(reply, { status, code });
}

t.test('only the chat profile, while it replies in the onboarding chat, may ask', async (t) => {
  const body = { urls: ['https://acme.example/'] };
  const { onboarding, turn, agent, research } = await inChat(await inState(app, 'review'));
  isRefused(t, await app.service.post(pathOf(onboarding), body), 401, 'agent_unauthorized');
  isRefused(t, await app.owner.post(pathOf(onboarding), body), 401, 'agent_unauthorized');
  const other = await inState(app, 'review');
  isRefused(t, await agent.post(pathOf(other), body), 401, 'agent_unauthorized');

  expectSuccess(await runtimeOf(app, turn).complete({ parts: [{ kind: 'text', text: 'Done' }] }));
  isRefused(t, await research(body), 401, 'agent_unauthorized');

  const completed = await inState(app, 'review');
  const asked = await inChat(completed);
  expectSuccess(await runtimeOf(app, asked.turn).complete({ parts: [{ kind: 'text', text: 'Done' }] }));
  expectSuccess(await complete(app, completed));
  isRefused(t, await asked.research(body), 401, 'agent_unauthorized');
});

t.test('a turn in another chat may not ask', async (t) => {
  const onboarding = await inState(app, 'completed');
  const chats = `/organizations/${onboarding.organizationId}/chats`;
  const chat = expectSuccess(await app.owner.post<{ id: string }>(chats, { title: 'Other' }), 201);
  const asked = await inChat({ ...onboarding, chatId: chat.id });
  isRefused(t, await asked.research({ urls: ['https://acme.example/'] }), 401, 'agent_unauthorized');
});

t.test('it works while the research of the job is under way, and stays when that ends', async (t) => {
  const { origin } = await openSite(t, site);
  const onboarding = expectSuccess(await start(app, await create(app)));
  const { research } = await inChat(onboarding);
  const found = researched(await research({ urls: [`${origin}/team`] }));
  t.match(found, { status: 'researching', reviewSha256: null, evidence: [{ title: 'Team' }] });
});

t.test('bodies that ask for nothing, or for what is no address, are refused', async (t) => {
  const { research } = await inChat(await inState(app, 'review'));
  const six = Array.from({ length: 6 }, (_, index) => `https://acme.example/${index}`);
  for (const body of [
    ...[{}, { urls: [] }, { urls: ['ftp://acme.example/'] }, { urls: ['acme.example'] }, { urls: six }, { urls: 'x' }],
    ...[
      { urls: ['https://user:secret@acme.example/'] },
      { question: ' ' },
      { question: 'x'.repeat(1_001) },
      { other: 1 },
    ],
  ]) {
    isRefused(t, await research(body), 400, 'validation_failed');
  }
  isRefused(t, await research({ question: 'What?' }), 409, 'state_conflict');
});

t.test('with a key the response is stored', async (t) => {
  const { origin, paths } = await openSite(t, site);
  const { onboarding, agent } = await inChat(await inState(app, 'review'));
  const headers = { 'idempotency-key': 'one' };
  const body = { urls: [`${origin}/team`] };
  const first = researched(await agent.post(pathOf(onboarding), body, { headers }));
  t.same(researched(await agent.post(pathOf(onboarding), body, { headers })), first);
  t.same(paths, ['/robots.txt', '/team']);
});
