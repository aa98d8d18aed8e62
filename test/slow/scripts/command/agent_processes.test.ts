// The command as an agent starts it: by its shim, beside git and an MCP client.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import t, { type Test } from 'tap';
import { commitFile, createCoder, seedRepository, startGit } from '../../../api/git/support.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { openFolder } from '../../../support/folders.ts';
import { CHARGES, openGateway, REFUND } from '../../../support/gateway_world.ts';
import { gitEnvironment } from '../../../support/git_origin.ts';

t.setTimeout(240_000);
const SHIM = path.resolve(import.meta.dirname, '../../../../scripts/command/business-runner.mjs');

type Run = Readonly<{ url: string; token: string; organizationId: string }>;

/** A folder with the command on the PATH, and the environment of a run. */
async function openRun(t: Test, { url, token, organizationId }: Run) {
  const folder = await openFolder(t);
  const bin = path.join(folder, 'bin');
  await mkdir(bin);
  await symlink(SHIM, path.join(bin, 'business-runner'));
  const environment: Record<string, string> = {
    ...(bareEnvironment({}) as Record<string, string>),
    ...(gitEnvironment() as Record<string, string>),
    PATH: `${bin}:${process.env['PATH']}`,
    BUSINESS_RUNNER_URL: url.replace(/\/$/, ''),
    BUSINESS_RUNNER_TOKEN: token,
    BUSINESS_RUNNER_ORGANIZATION: organizationId,
    INPUT_DIR: folder,
  };
  async function run(program: string, ...argv: string[]) {
    const child = spawn(program, argv, { cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { status, out, err };
  }
  return { folder, environment, run };
}

t.test('git clones, fetches and pushes without a token in an address, a file or its settings', async (t) => {
  const world = await startGit(t);
  const bare = await seedRepository(t, world.origin);
  const coder = await createCoder(world);
  const { executionToken: token } = coder.run;
  const { folder, run } = await openRun(t, {
    url: world.app.url,
    token,
    organizationId: coder.org.organizationId,
  });
  const key = coder.integrationId;
  const cloned = await run('business-runner', 'git', key, 'acme/shop', 'shop');
  t.match(cloned, { status: 0, out: '' }, cloned.err);
  const clone = path.join(folder, 'shop');
  t.equal(await readFile(path.join(clone, 'README.md'), 'utf8'), 'shop\n');
  const config = await readFile(path.join(clone, '.git/config'), 'utf8');
  t.match(config, `helper = !business-runner git-credential ${key}`);
  t.notMatch(config, /[0-9a-f]{64}/);
  t.notOk(config.includes(token));
  t.match(await run('git', '-C', clone, 'fetch'), { status: 0 });

  await run('git', '-C', clone, 'checkout', '--quiet', '-b', 'topic');
  await commitFile(clone, 'a.txt', 'a\n');
  const pushed = await run('git', '-C', clone, 'push', 'origin', 'topic');
  t.equal(pushed.status, 1);
  t.match(pushed.err, /\[remote rejected\] topic -> topic \(.*action/);
  t.match((await run('business-runner', 'actions')).out, /awaiting_approval/);
  t.notMatch((await run('git', '-C', bare, 'branch')).out, /topic/);

  const printed = await run('business-runner', 'git', key, 'acme/shop');
  t.match(printed.out, /^git clone --config credential\.http.* --config '.*' http:\S+\/acme\/shop\n$|^git clone /);
  t.notMatch(printed.out, /[0-9a-f]{64}/);
  const again = await run('sh', '-c', `${printed.out.trim()} second`);
  t.equal(again.status, 0, again.err);
  t.match(await run('business-runner', 'git', key, 'acme/none', 'none'), { status: 1, err: /not found|404/i });
  t.match(await run('business-runner', 'git', key, '../x'), { status: 64 });
  const other = await run(
    'sh',
    '-c',
    `printf 'protocol=https\\nhost=evil.example\\n' | business-runner git-credential ${key} get`,
  );
  t.match(other, { status: 0, out: '' });
});

t.test('a client of MCP reads, proposes a write, and gets errors for what is wrong', async (t) => {
  const world = await openGateway(t);
  const by = await world.caller();
  const { folder, environment } = await openRun(t, {
    url: world.app.url,
    token: by.run.executionToken,
    organizationId: by.org.organizationId,
  });
  await mkdir(path.join(folder, 'context/organization'), { recursive: true });
  await writeFile(path.join(folder, 'context/organization/facts.json'), '{"entries":[]}');
  const transport = new StdioClientTransport({
    command: 'business-runner',
    args: ['mcp'],
    env: environment,
    stderr: 'pipe',
  });
  let complaints = '';
  transport.stderr?.on('data', (chunk) => {
    complaints += chunk;
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport as Parameters<Client['connect']>[0]);
  t.teardown(() => client.close());
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: args });
    const [{ text: said = '' } = {}] = content as { text?: string }[];
    return { isError, said };
  };

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
  t.equal(world.stripe.sent(), 0);
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
  t.equal(complaints, '');

  const { pid } = transport;
  await client.close();
  t.throws(() => process.kill(pid ?? 0, 0), { code: 'ESRCH' }, 'it ends with its input');
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
  const running = start({
    BUSINESS_RUNNER_URL: 'http://127.0.0.1:1',
    BUSINESS_RUNNER_TOKEN: 'x',
    BUSINESS_RUNNER_ORGANIZATION: crypto.randomUUID(),
  });
  running.stdin.end();
  const [said, [ended]] = await Promise.all([text(running.stdout), once(running, 'close')]);
  t.match({ said, ended }, { said: '', ended: 0 });
});
