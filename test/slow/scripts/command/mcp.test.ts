// `business-runner mcp` as an agent program starts it, by the client of the MCP library.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import t, { type Test } from 'tap';
import { bareEnvironment } from '../../../support/environment.ts';
import { openFolder } from '../../../support/folders.ts';
import { CHARGES, openGateway, REFUND } from '../../../support/gateway_world.ts';
import { until } from '../../../support/wait.ts';
import { useFileTools } from './file_tools.ts';
import { openRun, SHIM } from './set_up.ts';

t.setTimeout(240_000);

const world = await openGateway(t);
const { stripe } = world;
t.afterEach(() => {
  stripe.faults.before = undefined;
});

type Content = Readonly<{ type?: string; text?: string; uri?: string; name?: string }>;

/** The client of a server that runs for an organization of its own. */
async function openClient(t: Test, ...argv: string[]) {
  const by = await world.caller();
  const { folder, environment } = await openRun(t, {
    url: world.app.url,
    token: by.run.executionToken,
    organizationId: by.org.organizationId,
  });
  const transport = new StdioClientTransport({
    command: 'business-runner',
    args: ['mcp', ...argv],
    env: environment,
    cwd: folder,
    stderr: 'pipe',
  });
  let complaints = '';
  transport.stderr?.on('data', (chunk) => {
    complaints += chunk;
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport as Parameters<Client['connect']>[0]);
  t.teardown(() => client.close());
  async function call(name: string, args: Record<string, unknown> = {}, signal?: AbortSignal) {
    const options = signal ? { signal } : {};
    const { content, isError = false } = await client.callTool({ name, arguments: args }, undefined, options);
    const [{ text: said = '' } = {}, ...links] = content as Content[];
    return { isError, said, links };
  }
  const told = async (name: string, args: Record<string, unknown> = {}) => JSON.parse((await call(name, args)).said);
  return { by, folder, client, transport, call, told, complaints: () => complaints };
}

t.test('a client of MCP reads, proposes a write, and gets errors for what is wrong', async (t) => {
  const { folder, client, transport, call, complaints } = await openClient(t);
  await mkdir(path.join(folder, 'context/organization'), { recursive: true });
  await writeFile(path.join(folder, 'context/organization/facts.json'), '{"entries":[]}');

  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  for (const name of [
    'list_integrations',
    'call_tool',
    'list_actions',
    'show_action',
    'list_context',
    'read_context',
  ]) {
    t.ok(names.includes(name), name);
  }
  t.equal(new Set(names).size, names.length);
  const refund = tools.find(({ name }) => name === 'shop__stripe_refunds_create');
  t.match(refund, { annotations: { readOnlyHint: false }, inputSchema: { type: 'object', required: ['charge'] } });

  const read = await call('shop__stripe_charges_list', { limit: 2 });
  t.match(JSON.parse(read.said), { kind: 'result', data: [{ id: 'ch_1' }, { id: 'ch_2' }], nextCursor: 'ch_2' });
  const page = { integration: 'shop', tool: CHARGES, arguments: { limit: 2 }, cursor: 'ch_2' };
  t.match(JSON.parse((await call('call_tool', page)).said), { kind: 'result' });
  t.match(JSON.parse((await call('list_integrations')).said), [{ key: 'shop' }]);

  const proposed = JSON.parse((await call('shop__stripe_refunds_create', { charge: 'ch_1', amount: 500 })).said);
  t.match(proposed, { kind: 'action', action: { status: 'awaiting_approval' }, note: /actionIds/ });
  t.equal(stripe.sent(), 0);
  const { id } = proposed.action;
  const same = { integration: 'shop', tool: REFUND, arguments: { charge: 'ch_1', amount: 500 } };
  t.match(JSON.parse((await call('call_tool', same)).said), { action: { id } });
  t.match(JSON.parse((await call('list_actions')).said), [{ id }]);
  t.match(JSON.parse((await call('show_action', { id })).said), { action: { id }, note: /nothing is done yet/ });

  t.match(await call('shop__stripe_charges_list', { limit: 101 }), { isError: true, said: /arguments\.limit/ });
  t.match(await call('call_tool', { tool: 1 }), { isError: true, said: /are not those of call_tool/ });
  t.match(await call('shop__none'), { isError: true, said: /there is no tool/ });
  t.match(await call('show_action', { id: crypto.randomUUID() }), { isError: true });
  t.same(JSON.parse((await call('list_context')).said), ['organization/facts.json']);
  t.match((await call('read_context', { name: 'facts.json' })).said, '{"entries":[]}');
  t.match(await call('read_context', { name: '../bin' }), { isError: true });
  t.equal(complaints(), '');

  const { pid } = transport;
  await client.close();
  t.throws(() => process.kill(pid ?? 0, 0), { code: 'ESRCH' }, 'it ends with its input');
});

t.test('a write that is proposed, approved and done is told so by later calls', async (t) => {
  const { by, told } = await openClient(t);
  const sent = stripe.sent();
  const refund = { charge: 'ch_1', amount: 500 };
  const { id } = (await told('shop__stripe_refunds_create', refund)).action;
  t.match(await told('show_action', { id }), { action: { status: 'awaiting_approval', decision: null } });
  await world.approve(by, id);
  await world.runAction(by, id);
  const shown = await told('show_action', { id });
  t.match(shown, {
    action: { id, status: 'succeeded', decision: { outcome: 'approved' }, execution: { result: { id: 're_1' } } },
  });
  t.equal(shown.note, undefined, 'there is nothing to wait for');
  t.match(await told('list_actions'), [{ id, status: 'succeeded' }]);
  t.match(await told('shop__stripe_refunds_create', refund), { action: { id, status: 'succeeded' } });
  t.equal(stripe.sent(), sent + 1);
});

/** A provider that responds to nothing. Which of its calls have ended is counted. */
function hold() {
  const calls = { begun: 0, ended: 0 };
  stripe.faults.before = (_, res) => {
    calls.begun += 1;
    res.once('close', () => {
      calls.ended += 1;
    });
    return true;
  };
  return calls;
}

t.test('a call that the client cancels, or leaves, is broken off at the provider', async (t) => {
  const { client, transport, call } = await openClient(t);
  const calls = hold();
  const cancel = new AbortController();
  const cancelled = call('shop__stripe_charges_list', {}, cancel.signal);
  await until('the provider is asked', () => calls.begun === 1);
  cancel.abort(new Error('no longer wanted'));
  await t.rejects(cancelled, /no longer wanted/);
  // Long before the gateway itself ends it.
  await until('it is broken off', () => calls.ended === 1, 20_000);
  stripe.faults.before = undefined;
  t.match(await call('shop__stripe_charges_list'), { isError: false }, 'the server goes on');

  const others = hold();
  const left = call('call_tool', { integration: 'shop', tool: CHARGES });
  left.catch(() => {});
  await until('the provider is asked', () => others.begun === 1);
  const { pid } = transport;
  const from = performance.now();
  await client.close();
  await until('it is broken off', () => others.ended === 1, 20_000);
  t.throws(() => process.kill(pid ?? 0, 0), { code: 'ESRCH' }, 'the server has ended');
  t.ok(performance.now() - from < 10_000);
});

t.test('a provider that takes too long is an error, after the time of the server or of the call', async (t) => {
  const { call } = await openClient(t, '--timeout', '1');
  hold();
  const slow = /does not respond|timed out|in time/;
  t.match(await call('shop__stripe_charges_list'), { isError: true, said: slow });
  const other = await openClient(t);
  const called = { integration: 'shop', tool: CHARGES };
  t.match(await other.call('call_tool', { ...called, timeoutSeconds: 1 }), { isError: true, said: slow });
  t.match(await other.call('call_tool', { ...called, timeoutSeconds: 61 }), { isError: true, said: /timeoutSeconds/ });
});

t.test('files are paths on this machine, and those that a read brings are links too', async (t) => {
  const { bring, restore } = useFileTools(t);
  const sha256 = bring(5);
  const kept = await openFolder(t);
  for (const to of [[], ['--to', kept]]) {
    const { folder, client, call, told } = await openClient(t, ...to);
    const read = await call('shop__stripe_charges_list');
    const [file] = JSON.parse(read.said).files;
    t.match(file, { name: 'film.bin', sizeBytes: 5, sha256, path: to[1] === undefined ? tmpdir() : kept });
    t.equal(await readFile(file.path, 'utf8'), 'filmf');
    const uri = pathToFileURL(file.path).href;
    t.same(read.links, [{ type: 'resource_link', uri, name: 'film.bin', mimeType: 'application/octet-stream' }]);
    const again = await told('call_tool', { integration: 'shop', tool: CHARGES });
    t.not(again.files[0].path, file.path, 'another call has another place');

    // A path is one of the server's folder.
    await writeFile(path.join(folder, 'a.bin'), 'filmf');
    const sent = { integration: 'shop', tool: REFUND, files: { film: 'a.bin' } };
    t.match(await told('call_tool', sent), { action: { files: [{ argument: 'film', name: 'a.bin', sha256 }] } });
    const none = { ...sent, files: { film: 'none.bin' } };
    t.match(await call('call_tool', none), { isError: true, said: /none\.bin cannot be read \(ENOENT\)/ });
    await client.close();
    t.equal(existsSync(file.path), to.length > 0, 'without a folder of their own they go with the server');
  }
  restore();
});

t.test('MCP needs a run, and ends with its input', async (t) => {
  const folder = await openFolder(t);
  const start = (environment: NodeJS.ProcessEnv) =>
    spawn(process.execPath, [SHIM, 'mcp', '--no-env-file'], {
      cwd: folder,
      env: bareEnvironment(environment),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  const without = start({});
  const [out, err, [status]] = await Promise.all([text(without.stdout), text(without.stderr), once(without, 'close')]);
  t.match({ out, err, status }, { out: '', err: /BUSINESS_RUNNER_TOKEN is not set/, status: 77 });
  const nowhere = {
    BUSINESS_RUNNER_URL: 'http://127.0.0.1:1',
    BUSINESS_RUNNER_TOKEN: 'x',
    BUSINESS_RUNNER_ORGANIZATION: crypto.randomUUID(),
  };
  const running = start(nowhere);
  running.stdin.end();
  const [said, [ended]] = await Promise.all([text(running.stdout), once(running, 'close')]);
  t.match({ said, ended }, { said: '', ended: 0 });

  const confused = start(nowhere);
  confused.stdin.end('garbage\n{"method": 1}\n{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n');
  const [pong, told] = await Promise.all([text(confused.stdout), text(confused.stderr)]);
  t.match(JSON.parse(pong), { id: 1, result: {} }, 'it goes on');
  t.equal(
    told,
    'business-runner: a line of the input is no JSON\n' +
      'business-runner: a line of the input is no message of JSON-RPC 2.0\n',
  );

  const flooded = start(nowhere);
  // It may be gone before all of it is written.
  flooded.stdin.on('error', () => {}).write('x'.repeat(11 * 2 ** 20));
  const [complaint, [refused]] = await Promise.all([text(flooded.stderr), once(flooded, 'close')]);
  t.match({ complaint, refused }, { complaint: /\nbusiness-runner: a line of the input is too long/, refused: 65 });
});
