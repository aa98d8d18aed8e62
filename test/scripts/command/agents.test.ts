import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { ownerApi } from '../../../scripts/command/api.ts';
import { saveFiles } from '../../../scripts/command/call_downloads.ts';
import { capabilities } from '../../../scripts/command/capabilities.ts';
import { createStop } from '../../../scripts/command/stop.ts';
import { json } from '../../engine/providers/support.ts';
import { actionRow } from '../../support/action_fixtures.ts';
import { ownerPath } from '../../support/api_fixtures.ts';
import { endLease } from '../../support/fixtures.ts';
import { openFolder } from '../../support/folders.ts';
import { type Caller, CHARGES, openGateway, REFUND } from '../../support/gateway_world.ts';
import { begin } from './set_up.ts';

const world = await openGateway(t);
const { app, sql, stripe } = world;
const REFUND_ARGUMENTS = { charge: 'ch_1', amount: 500, reason: 'duplicate' };

/** The command as a run has it. */
async function agent(by?: Caller, more: NodeJS.ProcessEnv = {}) {
  const caller = by ?? (await world.caller());
  const { org, run } = caller;
  const environment = {
    BUSINESS_RUNNER_URL: app.url.replace(/\/$/, ''),
    BUSINESS_RUNNER_TOKEN: run.executionToken,
    BUSINESS_RUNNER_ORGANIZATION: org.organizationId,
    ...more,
  };
  return { by: caller, environment, call: (...argv: string[]) => begin(environment, ...argv).ended };
}
const resolved = async ({ org }: Caller) => {
  const { rows } = await sql.owner.query(
    'select count(*)::int as n from app.integration_gateway_capabilities where organization_id = $1',
    [org.organizationId],
  );
  return rows[0].n;
};

t.beforeEach(() => {
  stripe.calls.length = 0;
  stripe.faults.before = undefined;
  stripe.faults.charges = undefined;
});

t.test('the tools of a run are listed, with their arguments', async (t) => {
  const { by, call } = await agent();
  const listed = await call('tools');
  t.equal(listed.status, 0, listed.err);
  t.match(listed.out, /^KEY +TOOL +EFFECT +RISK\n/);
  t.match(listed.out, /\nshop {2}stripe\.refunds\.create +write +high\n/);
  t.match(listed.out, /\nshop {2}stripe\.charges\.list +read *\n/);
  const one = await call('tools', 'shop');
  t.match(one.out, /^shop {2}Stripe \(stripe\): \d+ tools\n/);
  t.match(one.out, /\n {2}stripe\.charges\.list {2}read\n/);
  t.match(one.out, /\n {2}stripe\.refunds\.create {2}write, risk high\n[\s\S]* charge \(string, required\)/);
  t.ok(one.out.split('\n').every((line) => !/[^\P{Cc}\n]/u.test(line)));
  t.match(JSON.parse((await call('tools', '--json')).out), [{ key: 'shop', available: true }]);
  t.match(JSON.parse((await call('tools', by.integrationId, '--json')).out), { key: 'shop' });
  t.match(await call('tools', 'none'), { status: 66, out: '' });
  await app.owner.patch(ownerPath(by.org, '/integrations/shop/status'), { status: 'disabled' });
  t.match((await call('tools')).out, /\nshop {2}\(not available: disabled\)/);
});

t.test('a read prints what the provider says, and how to go on', async (t) => {
  const { call } = await agent();
  stripe.calls.length = 0;
  const first = await call('call', 'shop', CHARGES, '--arg', 'limit=2');
  t.match(first, { status: 0, err: 'there is more: --cursor ch_2\n' });
  t.same(JSON.parse(first.out), [
    { id: 'ch_1', amount: 100 },
    { id: 'ch_2', amount: 200 },
  ]);
  const next = await call('call', 'shop', CHARGES, '--json', '{"limit": 2}', '--cursor', 'ch_2');
  t.match(JSON.parse(next.out), { kind: 'result', nextCursor: 'ch_2', files: [] });
  t.equal(next.err, '');
  t.same(
    stripe.calls.map(({ url }) => url.search),
    ['?limit=2', '?limit=2&starting_after=ch_2'],
  );
  stripe.faults.charges = { data: [{ id: 'a\u001b[2J\u202eb' }], has_more: false };
  t.notMatch((await call('call', 'shop', CHARGES)).out, /[^\P{Cc}\n]|\u202e/u);
});

t.test('a call that is named is one call; another body by its name is refused', async (t) => {
  const { call } = await agent();
  const named = ['call', 'shop', CHARGES, '--invocation', randomUUID()];
  const first = await call(...named);
  t.same(await call(...named), first);
  t.equal(stripe.asked(), 1);
  t.match(await call(...named, '--arg', 'limit=5'), { status: 1, out: '' });
  t.equal(stripe.asked(), 1);
  t.match(await call('call', 'shop', CHARGES, '--invocation', 'x'), { status: 64 });
});

t.test('a write becomes an action, which the agent sees and does not decide', async (t) => {
  const { by, call } = await agent();
  const proposed = await call(
    'call',
    'shop',
    REFUND,
    '--arg',
    'charge=ch_1',
    '--arg',
    'amount=500',
    '--arg',
    'reason=duplicate',
  );
  t.equal(proposed.status, 3, proposed.err);
  const [, id = ''] = /^([0-9a-f-]{36}) {2}awaiting_approval {2}risk high /.exec(proposed.out) ?? [];
  t.match(proposed.out, / {2}does {6}Refund 500 /);
  t.match(proposed.err, `"actionIds": ["${id}"]`);
  t.notMatch(proposed.out, /actions approve/);
  t.match(await actionRow(sql, id), { arguments: REFUND_ARGUMENTS, status: 'awaiting_approval' });
  const again = await call('call', 'shop', REFUND, '--json', JSON.stringify(REFUND_ARGUMENTS));
  t.match(JSON.parse(again.out), { kind: 'action', action: { id } });
  const repeated = await call('call', 'shop', REFUND, '--json', JSON.stringify(REFUND_ARGUMENTS), '--repeat');
  const other = JSON.parse(repeated.out).action.id;
  t.not(other, id);
  await app.owner.post(ownerPath(by.org, `/actions/${other}/reject`), { reason: 'Twice' });

  t.match((await call('actions')).out, new RegExp(`\\n${id.slice(-8)} +awaiting_approval +high `));
  const shown = await call('actions', 'show', id.slice(-8));
  t.match(shown.out, new RegExp(`^${id} {2}awaiting_approval `));
  t.notMatch(shown.out, /actions approve/);
  for (const argv of [
    ['approve', id, '--yes'],
    ['reject', id, 'No'],
    ['reconcile', id, 'failed', '--note', 'x'],
  ]) {
    t.match(await call('actions', ...argv), { status: 77, err: /agents propose, and people decide/ });
  }
  t.equal((await actionRow(sql, id)).status, 'awaiting_approval');

  const foreign = await agent();
  t.match(await foreign.call('actions', 'show', id), { status: 66 });
  t.match((await foreign.call('actions')).out, 'no actions\n');
  t.match(await foreign.call('tools', by.integrationId), { status: 66 });

  await app.owner.post(ownerPath(by.org, `/actions/${id}/reject`), { reason: 'Too much' });
  t.match((await call('actions', 'show', id)).out, / {2}decision {2}rejected by .*: Too much\n/);
  const retried = await call('call', 'shop', REFUND, '--json', JSON.stringify(REFUND_ARGUMENTS), '--retry-of', id);
  t.match(JSON.parse(retried.out), { action: { retryOf: id } });
});

t.test('each refusal has its words and its status', async (t) => {
  const { by, call, environment } = await agent();
  const wrong = await call('call', 'shop', CHARGES, '--json', '{"limit": 101, "more": 1}');
  t.match(wrong, { status: 65, out: '', err: /arguments\.limit: .*arguments\.more: / });
  t.match(await call('call', 'shop', CHARGES, '--json', '{"limit":'), { status: 65, err: /no JSON object/ });
  t.match(await call('call', 'shop', CHARGES, '--arguments', '[1]'), { status: 65 });
  t.match(await call('call', 'shop', CHARGES, '--arg', 'limit'), { status: 64, err: /--arg takes NAME=VALUE/ });
  t.match(await call('call', 'shop', CHARGES, '--timeout', '61'), { status: 64 });
  t.match(await call('call', 'shop', 'stripe.none'), { status: 66 });
  t.match(await call('call', 'none', CHARGES), { status: 66 });
  t.match(await call('call', 'shop'), { status: 64, err: /TOOL is missing/ });
  t.equal(stripe.asked(), 0);

  const said = (status: number) => {
    stripe.faults.before = (_call, res) => {
      json(res, status, { error: { type: 'invalid_request_error' } });
      return true;
    };
  };
  for (const [status, exit] of [
    [400, 1],
    [403, 77],
    [404, 66],
    [500, 69],
  ] as const) {
    said(status);
    const ended = await call('call', 'shop', CHARGES, '--timeout', '1');
    t.equal(ended.status, exit, ended.err);
    t.match(ended.err, /^business-runner: \S.*\n$/);
  }
  stripe.faults.before = undefined;

  const other = (fields: NodeJS.ProcessEnv, ...argv: string[]) => begin({ ...environment, ...fields }, ...argv).ended;
  t.match(await other({ BUSINESS_RUNNER_TOKEN: '' }, 'tools'), { status: 77, err: /BUSINESS_RUNNER_TOKEN is not set/ });
  t.match(await other({ BUSINESS_RUNNER_ORGANIZATION: 'demo' }, 'tools'), { status: 64, err: /the id of the org/ });
  t.match(await other({ BUSINESS_RUNNER_ORGANIZATION: randomUUID() }, 'tools'), { status: 77 });
  t.match(await other({}, 'task', 'list'), { status: 77, err: /task list is for people/ });
  t.match(await other({ BUSINESS_RUNNER_URL: 'http://127.0.0.1:1' }, 'tools'), { status: 69, err: /responds at/ });
  await endLease(sql, by.run);
  t.match(await call('call', 'shop', CHARGES), { status: 77, err: /the run is over/ });
});

t.test('calls of one run share a capability, which no file shows, and get another when it is stale', async (t) => {
  const folder = path.join(await openFolder(t), 'cache');
  const { by, call } = await agent(undefined, { BUSINESS_RUNNER_CACHE: folder });
  const before = await resolved(by);
  for (let n = 0; n < 3; n += 1) t.equal((await call('call', 'shop', CHARGES)).status, 0);
  t.equal((await resolved(by)) - before, 1);
  const [file = '', ...others] = await readdir(folder);
  t.same(others, []);
  const kept = await readFile(path.join(folder, file), 'latin1');
  t.notMatch(kept, /[0-9a-f]{64}|internal/);

  // The epoch rises.
  await app.owner.put(ownerPath(by.org, '/integrations/shop/tools'), { accessMode: 'full' });
  t.equal((await call('call', 'shop', CHARGES)).status, 0);
  await sql.owner.query(
    'update app.integration_gateway_capabilities set expires_at = now() where organization_id = $1',
    [by.org.organizationId],
  );
  t.equal((await call('call', 'shop', CHARGES)).status, 0, 'one that is over');
  await writeFile(path.join(folder, file), 'broken');
  t.equal((await call('call', 'shop', CHARGES)).status, 0, 'a file that is none of ours');
  const sibling = await agent(by, { BUSINESS_RUNNER_CACHE: path.join(folder, file, 'none') });
  t.equal((await sibling.call('call', 'shop', CHARGES)).status, 0, 'a folder that cannot be');
});

t.test('files are stored with a call, and saved where nothing is', async (t) => {
  const folder = await openFolder(t);
  const given = path.join(folder, 'offer.md');
  await writeFile(given, 'the offer');
  const { by, environment, call } = await agent();
  // No tool of this provider takes one.
  t.match(await call('call', 'shop', CHARGES, '--file', `offer=${given}`), { status: 65, err: /offer/ });
  t.match(await call('call', 'shop', CHARGES, '--file', `offer=${given}.none`), { status: 66, err: /ENOENT/ });
  const { rows } = await sql.owner.query(
    `select id, invocation_id, name, content_type, size_bytes::int, sha256
     from app.action_invocation_files where organization_id = $1`,
    [by.org.organizationId],
  );
  t.match(rows, [{ name: 'offer.md' }]);
  const [{ id: fileId, invocation_id: invocationId, content_type: contentType, size_bytes: sizeBytes, sha256 }] = rows;
  const home = `/internal/agent/organizations/${by.org.organizationId}`;
  const api = ownerApi({ url: environment.BUSINESS_RUNNER_URL, token: by.run.executionToken, as: 'agent' });
  const stop = createStop();
  const place = { api, home, token: by.run.executionToken ?? '', folder: undefined, signal: stop.signal };
  const file = { fileId, name: '../../.a/b\u0007.md', contentType, sizeBytes, sha256 };
  const brought = { key: 'shop', invocationId, files: [file], folder };
  const context = { capabilities: capabilities(place), stop };
  t.same(await saveFiles(context, brought), [path.join(folder, '1-_.._.a_b_.md')]);
  t.equal(await readFile(path.join(folder, '1-_.._.a_b_.md'), 'utf8'), 'the offer');
  await t.rejects(saveFiles(context, brought), { exit: 1, message: /was not saved \(EEXIST\)/ });
});

t.test('the context of a run is among its inputs, and that of an organization asked of the API', async (t) => {
  const inputs = await openFolder(t);
  const { by, call } = await agent(undefined, { INPUT_DIR: inputs });
  t.match(await call('context'), { status: 0, out: 'no documents\n' });
  await mkdir(path.join(inputs, 'context/organization/a'), { recursive: true });
  await mkdir(path.join(inputs, 'context/growth/a'), { recursive: true });
  await writeFile(path.join(inputs, 'task.json'), '{}');
  await writeFile(path.join(inputs, 'context/organization/facts.json'), '{"entries": []}\u001b[2J');
  await writeFile(path.join(inputs, 'context/organization/a/x.json'), '1');
  await writeFile(path.join(inputs, 'context/growth/a/x.json'), '2');
  t.equal((await call('context', 'list')).out, 'growth/a/x.json\norganization/a/x.json\norganization/facts.json\n');
  t.match(await call('context', 'show', 'facts.json'), { status: 0, out: '{"entries": []}\\u001b[2J\n' });
  t.match(await call('context', 'show', 'growth/a/x.json'), { out: '2\n' });
  t.match(await call('context', 'show', 'a/x.json'), { status: 64, err: /several scopes/ });
  t.match(await call('context', 'show', '../task.json'), { status: 66 });
  t.match(await call('context', 'show', 'organization/../../task.json'), { status: 66 });
  const owner = { BUSINESS_RUNNER_URL: app.url, BUSINESS_RUNNER_ORGANIZATION: by.org.organizationId };
  t.match(await begin(owner, 'context').ended, { status: 0, out: 'no documents\n' });
  t.match(await begin(owner, 'context', 'show', 'facts.json').ended, { status: 66 });
});

t.test('who reads help finds an example and each status', async (t) => {
  for (const topic of ['tools', 'call', 'git', 'context', 'mcp']) {
    const { status, out } = await begin({}, topic, '--help').ended;
    t.equal(status, 0);
    t.match(out, new RegExp(`^business-runner ${topic}[ :][^]*\\n {2}.*business-runner[^]*xit status: 0`));
    t.same(
      out.split('\n').filter((line) => line.length > 80),
      [],
    );
  }
  t.match((await begin({}, '--help').ended).out, /tools, call, git, mcp/);
});
