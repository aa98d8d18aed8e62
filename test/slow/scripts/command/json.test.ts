// With --json each command prints one JSON value and nothing else. A command that no row names fails the last test.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import t, { type Test } from 'tap';
import { receiptKeys } from '../../../../engine/receipts/index.ts';
import { COMMAND_NAMES, readCommand } from '../../../../scripts/command/options.ts';
import { createCoder } from '../../../api/git/support.ts';
import { begin, publishCatalog, setUp } from '../../../scripts/command/set_up.ts';
import { createActing, createProposer, grantGateway, makeUnknown, propose } from '../../../support/action_fixtures.ts';
import { rawRequest } from '../../../support/api_fixtures.ts';
import { OWNER_TOKEN } from '../../../support/app.ts';
import { completeTurn, createChatOrganization, pullTurns, startTurn } from '../../../support/chat_fixtures.ts';
import { publishDocuments } from '../../../support/context_files.ts';
import { createTask, type TestOrganization } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { CHARGES, openGateway, REFUND } from '../../../support/gateway_world.ts';
import { createItem } from '../../../support/inbox_fixtures.ts';
import { until } from '../../../support/wait.ts';

const WITHOUT: Readonly<Record<string, string>> = {
  'git-credential': 'prints what git reads',
  mcp: 'speaks MCP on the standard streams',
};
t.setTimeout(180_000);
const world = await openGateway(t, {
  config: { receiptKeys: receiptKeys.parse(Buffer.alloc(32, 3).toString('base64')) },
});
const { app, sql } = world;
await publishCatalog(app);

const shown = new Set<string>();
/** How a call with --json ended, and what its value looks like. */
type Row = readonly [argv: readonly string[], status: number, expected: object];

async function expectJson(t: Test, environment: NodeJS.ProcessEnv, [argv, status, expected]: Row) {
  const name = readCommand(argv)?.name ?? '';
  const ended = await begin(environment, ...argv, '--json').ended;
  t.match({ status: ended.status, err: ended.err }, { status, err: '' }, name);
  const value = JSON.parse(ended.out);
  // A receipt is printed as it was signed.
  if (name !== 'actions receipt') t.equal(ended.out, `${JSON.stringify(value, null, 2)}\n`, name);
  t.match(value, expected, name);
  shown.add(name);
  return { value, out: ended.out };
}

function owner({ organizationId }: Pick<TestOrganization, 'organizationId'>) {
  return {
    BUSINESS_RUNNER_URL: app.url,
    BUSINESS_RUNNER_ORGANIZATION: organizationId,
    BUSINESS_RUNNER_OWNER_TOKEN: OWNER_TOKEN,
  };
}
function agent({ organizationId }: Pick<TestOrganization, 'organizationId'>, token: string) {
  return {
    BUSINESS_RUNNER_URL: app.url.replace(/\/$/, ''),
    BUSINESS_RUNNER_ORGANIZATION: organizationId,
    BUSINESS_RUNNER_TOKEN: token,
  };
}

t.test('tasks and organizations', async (t) => {
  const { environment, slug } = await setUp(t, app);
  // In this order: each row builds on those before it.
  const rows: readonly Row[] = [
    [['org', 'create', 'Other Lamps', '--slug', `${slug}x`, '--bare'], 0, { slug: `${slug}x` }],
    [['org', 'list'], 0, Array],
    [['task', 'create', 'Count'], 0, { identifier: 'T-1', title: 'Count' }],
    [['task', 'list'], 0, [{ identifier: 'T-1' }]],
    [['task', 'show', 'T-1'], 0, { identifier: 'T-1' }],
    [['task', 'logs', 'T-1'], 0, []],
    [['task', 'cancel', 'T-1'], 0, { status: 'cancelled' }],
    [['task', 'wait', 'T-1'], 2, { status: 'cancelled' }],
    [['task', 'retry', 'T-1'], 0, { identifier: 'T-1' }],
  ];
  for (const row of rows) await expectJson(t, environment, row);
});

t.test('the inbox and the context', async (t) => {
  const { org } = await createProposer(sql);
  const task = await createTask(sql, org);
  const { id } = await createItem(sql.api, org, task.id);
  const notification = await createItem(sql.api, org, task.id, { kind: 'notification', title: 'Look' });
  await publishDocuments(sql, app.services.storage, org, { 'facts.json': {} });
  const file = { scope: 'organization', path: 'facts.json' };
  const rows: readonly Row[] = [
    [['inbox'], 0, [{ id: notification.id }, { id }]],
    [['inbox', 'respond', id, 'This one', '--note', 'Why not'], 0, { id, status: 'responded', response: 'This one' }],
    [['inbox', 'acknowledge', notification.id], 0, { id: notification.id, status: 'acknowledged' }],
    [['context'], 0, [file]],
    [['context', 'list'], 0, [file]],
    [['context', 'show', 'facts.json'], 0, { name: 'facts.json', text: String }],
  ];
  for (const row of rows) await expectJson(t, owner(org), row);
});

t.test('actions, decisions and receipts', async (t) => {
  const by = await createProposer(sql);
  const [approved, rejected] = [await propose(sql, by), await propose(sql, by, { arguments: { amount: 2 } })];
  const unknown = await makeUnknown(sql, by, { arguments: { amount: 3 } });
  const environment = owner(by.org);
  const [first, second, third] = [approved.id, rejected.id, unknown.id];
  const rows: readonly Row[] = [
    [['actions'], 0, [{ id: third }, { id: second }, { id: first }]],
    [['actions', 'list', '--status', 'unknown'], 0, [{ id: third }]],
    [['actions', 'show', first], 0, { id: first, status: 'awaiting_approval' }],
    [['actions', 'approve', first, '--yes'], 0, { id: first, status: 'approved' }],
    [['actions', 'reject', second, 'No'], 0, { id: second, status: 'rejected', decision: { note: 'No' } }],
    [
      ['actions', 'reconcile', third, 'failed', '--note', 'Not there'],
      0,
      { id: third, status: 'failed', reconciliation: { note: 'Not there' } },
    ],
  ];
  for (const row of rows) await expectJson(t, environment, row);
  const [receipt, keys] = ['receipt', 'keys'].map((name) => `${name}.json`) as [string, string];
  const folder = await openFolder(t);
  const { out, value } = await expectJson(t, environment, [
    ['actions', 'receipt', second],
    0,
    { action: { id: second }, signature: String },
  ]);
  await writeFile(path.join(folder, receipt), out);
  const set = await rawRequest(app.url, { method: 'GET', path: '/.well-known/business-runner-keys.json' });
  await writeFile(path.join(folder, keys), set.body);
  const verify = ['receipt', 'verify', path.join(folder, receipt), '--keys', path.join(folder, keys)];
  await expectJson(t, {}, [verify, 0, value]);
});

t.test('a reply, with what its turn proposed', async (t) => {
  const org = await createChatOrganization(sql);
  const { integration } = await createActing(sql, undefined, org);
  const asking = expectJson(t, owner(org), [
    ['ask', 'Hello'],
    0,
    { role: 'assistant', status: 'complete', parts: [{ kind: 'text', text: 'Done' }, { kind: 'action' }] },
  ]);
  const claim = await until('it is asked', async () => (await pullTurns(sql.api, org)).at(0));
  const turn = await startTurn(sql.api, claim);
  const { id } = await propose(sql, await grantGateway(sql, org, integration, turn));
  await completeTurn(sql.api, turn);
  t.match((await asking).value.parts[1], { actionId: id, summary: 'Create {"amount":1}' });
});

t.test('what agents call', async (t) => {
  const by = await world.caller();
  const environment = agent(by.org, by.run.executionToken);
  const call = ['call', 'shop', REFUND, '--arguments', '{"charge": "ch_1"}'];
  const rows: readonly Row[] = [
    [['tools'], 0, [{ key: 'shop', available: true, capabilities: Array }]],
    [['tools', 'shop'], 0, { key: 'shop', capabilities: Array }],
    [['call', 'shop', CHARGES], 0, { kind: 'result', data: [{ id: 'ch_1' }, { id: 'ch_2' }], nextCursor: 'ch_2' }],
    [call, 3, { kind: 'action', action: { status: 'awaiting_approval' } }],
    [['actions'], 0, [{ tool: REFUND }]],
  ];
  for (const row of rows) await expectJson(t, environment, row);

  const coder = await createCoder(world);
  const key = coder.integrationId;
  const url = new RegExp(`/internal/git/integrations/${key}/acme/shop$`);
  const { value } = await expectJson(t, agent(coder.org, coder.run.executionToken), [
    ['git', key, 'acme/shop'],
    0,
    { url, settings: [String, /git-credential/], command: ['git', 'clone', '--config'] },
  ]);
  t.notMatch(JSON.stringify(value), coder.capability);
});

t.test('every command is among them, or has a reason why not', async (t) => {
  const missing = COMMAND_NAMES.filter((name) => !shown.has(name));
  t.same(missing, Object.keys(WITHOUT), 'a new command needs a row above');
});
