import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import { serveSales } from '../../../examples/mcp/server.ts';
import { DEMO_ORGANIZATION_ID } from '../../../scripts/demo/organization.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { expectSuccess } from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { bareEnvironment } from '../../support/environment.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

const root = path.resolve(import.meta.dirname, '../../..');
const INTEGRATIONS = `/organizations/${DEMO_ORGANIZATION_ID}/integrations`;
const NAMES = ['orders.list', 'products.list', 'returns.create', 'sales.total'];

async function setUp(t: Test, allowPrivateAddresses = true) {
  const { integrations } = integrationConfig({ origins: {} });
  const app = await startTestApp(t, { config: { integrations, allowPrivateAddresses } });
  const catalog = builtinCatalog();
  await app.database.owner.query('select app.agent_catalog_publish($1, $2)', [catalogRevision(catalog), catalog]);
  const folder = await mkdtemp(path.join(tmpdir(), 'demo-test-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const tokenFile = path.join(folder, 'token');
  await writeFile(tokenFile, SERVICE_TOKEN);

  /** Runs it to its end; `interruptAt`: Ctrl-C when it has printed this. */
  async function demo(settings: NodeJS.ProcessEnv = { BUSINESS_RUNNER_OWNER_TOKEN: OWNER_TOKEN }, interruptAt = '') {
    const argv = ['integrations', '--no-env-file', '--url', app.url, '--token-file', tokenFile];
    const child = spawn(process.execPath, ['scripts/demo/main.ts', ...argv], {
      cwd: root,
      env: bareEnvironment(settings),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      if (interruptAt !== '' && line.includes(interruptAt)) child.kill('SIGINT');
    });
    const [err, [status]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    return { status, out: lines.join('\n'), err };
  }

  const keys = async () => expectSuccess(await app.owner.get<{ key: string }[]>(INTEGRATIONS)).map(({ key }) => key);
  return { app, demo, keys };
}

t.test('the demo connects a server of its own, shows it twice over, and leaves nothing of it', async (t) => {
  const { app, demo, keys } = await setUp(t);
  for (const round of [1, 2]) {
    const { status, out, err } = await demo();
    t.equal(status, 0, err);
    t.match(out, /connected to 127\.0\.0\.1:\d+ without a credential: it is ready/);
    for (const name of NAMES) t.match(out, new RegExp(`      ${name} .* write  off \\(read_only\\)\n`), name);
    t.match(
      out,
      /sales\.total +Add up sales +read +on\n {6}returns\.create +Book a return +write +off \(read_only\)\n/,
    );
    t.match(out, /an agent sees 3 tools:\n\n(?: {6}\S+ +read\n){3}\n/);
    t.match(out, /an agent sees 4 tools:\n\n(?: {6}\S+ +read\n){3} {6}returns\.create +write\n/);
    t.match(out, /disabled by an owner, an agent sees it as disabled/);
    t.match(out, /deleted demo-sales/);
    t.same(await keys(), [], `round ${round}`);
  }
  const { rows } = await app.database.owner.query(
    `select distinct action from app.audit_entries where action like 'integration.%' order by action`,
  );
  const actions = ['configure', 'connect', 'create', 'delete', 'disable', 'select_tools'];
  t.same(
    rows.map(({ action }) => action),
    actions.map((action) => `integration.${action}`),
  );
});

t.test('what a killed demo left is removed by the next, and what is in use is not', async (t) => {
  const { app, demo, keys } = await setUp(t);
  t.equal((await demo()).status, 0);
  const server = await serveSales();
  t.teardown(() => server.close());
  expectSuccess(await app.owner.post(INTEGRATIONS, { key: 'demo-sales', provider: 'mcp' }), 201);
  const putServer = async (serverUrl: string) =>
    expectSuccess(
      await app.owner.put(`${INTEGRATIONS}/demo-sales/settings`, { settings: { kind: 'mcp', serverUrl } }),
      200,
    );
  await putServer(server.url);

  const second = await demo();
  t.equal(second.status, 1);
  t.match(second.err, /^demo: demo-sales is in use: another npm run demo -- integrations runs\. .*\n$/);
  t.same(await keys(), ['demo-sales']);

  await putServer('https://tools.example/mcp');
  const other = await demo();
  t.equal(other.status, 1);
  t.match(other.err, /^demo: the demo organization has an integration demo-sales that is not the demo's: .*\n$/);
  t.same(await keys(), ['demo-sales']);

  await putServer(server.url);
  server.close();
  const next = await demo();
  t.equal(next.status, 0, next.err);
  t.match(next.out, /removed the integration demo-sales, which an earlier demo had left/);
  t.same(await keys(), []);
});

t.test('Ctrl-C removes what the demo has made', async (t) => {
  const { demo, keys } = await setUp(t);
  const { status, out, err } = await demo(undefined, 'created the integration');
  t.equal(status, 130, err);
  t.equal(err, 'demo: interrupted\n');
  t.match(out, /deleted demo-sales/);
  t.notMatch(out, /disabled by an owner/);
  t.same(await keys(), []);
});

t.test('the demo says in one line which setting or token is missing, and leaves nothing', async (t) => {
  const { demo, keys } = await setUp(t, false);
  const anonymous = await demo({});
  t.equal(anonymous.status, 1);
  t.match(anonymous.err, /^demo: POST .*\(set BUSINESS_RUNNER_OWNER_TOKEN\)\n$/);
  const refused = await demo();
  t.equal(refused.status, 1);
  t.match(refused.err, /^demo: .* start it by ALLOW_PRIVATE_ADDRESSES=1 npm start, .*\n$/);
  t.same(await keys(), []);
});
