import { randomUUID } from 'node:crypto';
import t from 'tap';
import { canonicalJson, canonicalSha256 } from '../../../engine/canonical_json.ts';
import { type Receipt, readKeySet, readReceipt, receiptKeys, verifyReceipt } from '../../../engine/receipts/index.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import {
  actionFile,
  approve,
  createProposer,
  jobOf,
  makeOverdue,
  makeUnknown,
  type Proposer,
  propose,
  reject,
  renewed,
} from '../../support/action_fixtures.ts';
import { ownerPath, rawRequest, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { startIssuer } from '../../support/jwt.ts';
import { transition } from '../../support/transitions.ts';

const [FIRST, SECOND] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64'));
const app = await startTestApp(t, { config: { receiptKeys: receiptKeys.parse(FIRST) } });
const sql = sqlOf(app);

const path = ({ org }: Pick<Proposer, 'org'>, id: string) => ownerPath(org, `/actions/${id}/receipt`);
const KEYS = '/.well-known/business-runner-keys.json';

/** The bytes as they are sent. */
async function receiptText(by: Proposer, id: string, url = app.url): Promise<string> {
  const response = await rawRequest(url, { method: 'GET', path: path(by, id) });
  if (response.status !== 200) throw new Error(`${response.status} ${response.body}`);
  return response.body.toString('utf8');
}

async function keySet(url = app.url) {
  const { body } = await rawRequest(url, { method: 'GET', path: KEYS });
  return readKeySet(JSON.parse(body.toString('utf8'))) ?? { keys: [] };
}

async function verified(text: string): Promise<Receipt> {
  const receipt = readReceipt(JSON.parse(text));
  if (receipt === undefined || verifyReceipt(receipt, await keySet()) !== 'valid') throw new Error('not valid');
  return receipt;
}

/** One that a job has executed. */
async function executed(by: Proposer, fields: object, outcome: string, said: object) {
  const { id } = await propose(sql, by, { ...fields });
  await approve(sql.api, by.org, id, { note: 'Go on' });
  const job = jobOf(sql.jobs, by.org, id);
  await job.lease();
  await job.begin();
  await job.finish(outcome, { ...said });
  return id;
}

t.test('the receipt of an executed action says what it was, who decided and what became of it', async (t) => {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by, { files: [actionFile('body', 'text')], arguments: { amount: 7 } });
  t.equal(refusalOf(await app.owner.get(path(by, id))), '409 state_conflict not_final');
  await approve(sql.api, by.org, id, { note: 'Go on' });
  t.equal(refusalOf(await app.owner.get(path(by, id))), '409 state_conflict not_final');
  const job = jobOf(sql.jobs, by.org, id);
  await job.lease();
  const { sha256, sizeBytes } = actionFile('body', 'text');
  await job.begin([{ argument: 'body', sizeBytes, sha256 }]);
  t.equal(refusalOf(await app.owner.get(path(by, id))), '409 state_conflict not_final');
  await job.finish('succeeded', { result: { id: 'item-1', total: 4.5 } });

  const response = await rawRequest(app.url, { method: 'GET', path: path(by, id) });
  t.match(response, {
    status: 200,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
  });
  const text = response.body.toString('utf8');
  t.equal(canonicalJson(JSON.parse(text)), text);
  t.match(await verified(text), {
    action: {
      id,
      organizationId: by.org.organizationId,
      tool: 'items.create',
      arguments: { amount: 7 },
      files: [{ argument: 'body', sha256 }],
    },
    decision: { outcome: 'approved', by: 'ada', note: 'Go on', at: String },
    result: {
      status: 'succeeded',
      execution: { attempts: 1, result: { id: 'item-1', total: 4.5 }, error: null },
      resultSha256: canonicalSha256({ id: 'item-1', total: 4.5 }),
      reconciliation: null,
      reason: null,
    },
  });
  t.equal(await receiptText(by, id), text, 'a repeat is the same bytes');
  const all = await Promise.all(Array.from({ length: 4 }, () => receiptText(by, id)));
  t.same(new Set(all), new Set([text]));
  t.notMatch(text, /storage|digest|lease|subject/i);
});

t.test('every end has a receipt', async (t) => {
  const by = await createProposer(sql);
  const error = { code: 'provider_failed', message: 'no such item' };
  const failed = await executed(by, { arguments: { of: 'failed' } }, 'failed', { error });
  t.match(await verified(await receiptText(by, failed)), { result: { status: 'failed', execution: { error } } });

  const rejected = await propose(sql, by, { arguments: { of: 'rejected' } });
  await reject(sql.api, by.org, rejected.id, { reason: 'Too much' });
  t.match(await verified(await receiptText(by, rejected.id)), {
    decision: { outcome: 'rejected', note: 'Too much' },
    result: { status: 'rejected', execution: null, resultSha256: null },
  });

  const expired = await propose(sql, by, { arguments: { of: 'expired' } });
  await makeOverdue(sql, expired.id);
  const { organizationId } = by.org;
  await transition(sql.jobs, 'actions_expire', { organizationId, actionIds: [expired.id] });
  t.match(await verified(await receiptText(by, expired.id)), {
    decision: null,
    result: { status: 'expired', reason: { code: 'not_decided' } },
  });

  const unknown = await makeUnknown(sql, by, { arguments: { of: 'unknown' } });
  t.equal(refusalOf(await app.owner.get(path(by, unknown.id))), '409 state_conflict not_final');
  const said = { outcome: 'not_executed', note: 'Nothing there' };
  await app.owner.post(ownerPath(by.org, `/actions/${unknown.id}/reconcile`), said);
  t.match(await verified(await receiptText(by, unknown.id)), {
    decision: { outcome: 'approved' },
    result: { status: 'not_executed', reconciliation: { ...said, by: 'open' } },
  });

  const cancelled = await propose(sql, by, { arguments: { of: 'cancelled' } });
  await app.owner.post(ownerPath(by.org, `/tasks/${cancelled.task_id}/cancel`), {});
  t.match(await verified(await receiptText(by, cancelled.id)), {
    result: { status: 'cancelled', reason: { code: 'task_ended' } },
  });
});

t.test('secret arguments are hidden, and a long result is left out for its digest', async (t) => {
  const proposer = await createProposer(sql);
  await sql.owner.query(
    `update app.integration_tools set input_schema = '{"type": "object", "properties": {"key": {"type": "string", "writeOnly": true}}}'
     where organization_id = $1`,
    [proposer.org.organizationId],
  );
  const by = await renewed(sql, proposer);
  const long = { text: 'ä'.repeat(40_000) };
  const fields = { summary: 'Create a', arguments: { key: 'planted-secret', name: 'a' } };
  const id = await executed(by, fields, 'succeeded', { result: long });
  const text = await receiptText(by, id);
  t.notMatch(text, /planted-secret/);
  t.match(await verified(text), {
    action: { arguments: { key: HIDDEN, name: 'a' } },
    result: { execution: { result: null }, resultSha256: canonicalSha256(long) },
  });
  t.ok(text.length < 10_000);
});

t.test('the receipt of another organization, or of no action, is 404', async (t) => {
  const by = await createProposer(sql);
  const id = await executed(by, {}, 'succeeded', { result: null });
  const other = await createTestOrganization(sql);
  t.equal(refusalOf(await app.owner.get(path({ org: other }, id))), '404 action_not_found');
  t.equal(refusalOf(await app.owner.get(path(by, randomUUID()))), '404 action_not_found');
  const nowhere = `/organizations/${randomUUID()}/actions/${id}/receipt`;
  t.equal(refusalOf(await app.owner.get(nowhere)), '404 organization_not_found');
  t.equal(refusalOf(await app.owner.get(path(by, 'x'))), '400 validation_failed invalid_format');
});

t.test('viewers read it, members of other organizations and agents do not', async (t) => {
  const issuer = await startIssuer(t);
  const config = { ownerAuth: issuer.ownerAuth, receiptKeys: receiptKeys.parse(FIRST) };
  const members = await startTestApp(t, { database: app.database, config });
  const by = await createProposer(sql);
  const id = await executed(by, {}, 'succeeded', { result: null });
  const { organizationId } = by.org;
  await transition(sql.api, 'organization_member_put', { organizationId, subject: 'vic', role: 'viewer' });
  const authorization = `Bearer ${await issuer.token('vic')}`;
  const seen = await rawRequest(members.url, { method: 'GET', path: path(by, id), headers: { authorization } });
  t.match(seen, { status: 200, body: Buffer.from(await receiptText(by, id)) });
  const eve = members.owner.as(await issuer.token('eve'));
  t.equal(refusalOf(await eve.get(path(by, id))), '404 organization_not_found');
  for (const token of [SERVICE_TOKEN, by.token]) {
    t.equal(refusalOf(await members.owner.as(token).get(path(by, id))), '401 owner_unauthorized');
  }
});

t.test('without a key there is no receipt, and no public key', async (t) => {
  const bare = await startTestApp(t, { database: app.database, config: { receiptKeys: [] } });
  const by = await createProposer(sql);
  const id = await executed(by, {}, 'succeeded', { result: null });
  const refused = await bare.owner.get(path(by, id));
  t.equal(refusalOf(refused), '409 state_conflict deployment_setting');
  t.same(issuePaths(refused), ['RECEIPT_KEYS']);
  t.same(await keySet(bare.url), { keys: [] });
});

t.test('after a rotation the new key signs, and receipts of the old one stay valid', async (t) => {
  const config = { receiptKeys: receiptKeys.parse(`${SECOND},${FIRST}`) };
  const rotated = await startTestApp(t, { database: app.database, config });
  const by = await createProposer(sql);
  const id = await executed(by, {}, 'succeeded', { result: null });
  const [before, after] = await Promise.all([receiptText(by, id), receiptText(by, id, rotated.url)]);
  t.not(before, after);
  const set = await keySet(rotated.url);
  for (const text of [before, after]) {
    const receipt = readReceipt(JSON.parse(text));
    t.equal(receipt && verifyReceipt(receipt, set), 'valid');
  }
});

t.test('the public keys are for anybody, and cached', async (t) => {
  const response = await rawRequest(app.url, { method: 'GET', path: KEYS });
  t.match(response, {
    status: 200,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'public, max-age=300' },
  });
  const [key] = app.config.receiptKeys;
  t.same(JSON.parse(response.body.toString('utf8')), { keys: [key?.jwk] });
  t.notMatch(response.body.toString('utf8'), /"d"/);
  const { etag = '' } = response.headers;
  const unchanged = await rawRequest(app.url, { method: 'GET', path: KEYS, headers: { 'if-none-match': etag } });
  t.equal(unchanged.status, 304);
  const head = await rawRequest(app.url, { method: 'HEAD', path: KEYS });
  t.match(head, { status: 200, headers: { etag } });
});
