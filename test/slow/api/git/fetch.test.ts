import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { pktLine } from '../../../../engine/git/pkt_line.ts';
import {
  cloneOf,
  commitFile,
  createCoder,
  resolveGit,
  seedRepository,
  startGit,
  TOKEN,
} from '../../../api/git/support.ts';
import {
  agentPath,
  expectSuccess,
  rawRequest,
  refusalOf,
  runNext,
  runTask,
  workerOf,
} from '../../../support/api_fixtures.ts';
import { authorizationEpoch, createSecondProfile } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { git, gitDone, gitEnvironment, importCommits } from '../../../support/git_origin.ts';
import { allow } from '../../../support/integration_fixtures.ts';

const world = await startGit(t);
const { app, origin, sql } = world;
const bare = await seedRepository(t, origin);
origin.create('acme/secret');

const services = ['git-upload-pack', 'git-receive-pack'] as const;
const UPDATE = `${pktLine(`${'0'.repeat(40)} ${'1'.repeat(40)} refs/heads/x\0report-status`)}0000`;

/** How all requests of git are refused: of refs to fetch and to push, of a fetch, of a push. The path is sent as it stands. */
async function refusals(url: string): Promise<string> {
  const [, password = '', path = ''] = /^http:\/\/\w+:([^@]+)@[^/]+(.+)$/.exec(url) ?? [];
  const authorization = `Bearer ${password}`;
  const requests = services.flatMap((service) => [
    { path: `${path}/info/refs?service=${service}`, headers: { authorization } },
    {
      method: 'POST',
      path: `${path}/${service}`,
      headers: { authorization, 'content-type': `application/x-${service}-request` },
      body: service === 'git-upload-pack' ? '0000' : UPDATE,
    },
  ]);
  const found = new Set<string>();
  for (const request of requests) {
    const { status, body } = await rawRequest(app.url, request);
    if (status < 400) throw new Error(`expected a refusal of ${request.path}: ${body}`);
    const { error } = JSON.parse(String(body));
    found.add([status, error.code, error.issues?.[0]?.code].filter(Boolean).join(' '));
  }
  return [...found].join(', ');
}

/** The refs that a capability gets to see. */
async function refs(url: string, service = 'git-upload-pack') {
  const { username, password, origin: at, pathname } = new URL(url);
  const response = await fetch(`${at}${pathname}/info/refs?service=${service}`, {
    headers: { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text };
}

async function refusal(url: string, service?: string): Promise<string> {
  const { status, text } = await refs(url, service);
  if (status < 400) throw new Error(`expected a refusal: ${text.slice(0, 100)}`);
  const { error } = JSON.parse(text);
  return [status, error.code, error.issues?.[0]?.code].filter(Boolean).join(' ');
}

t.test('an execution clones, and fetches what is new', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  t.equal(await gitDone(folder, 'rev-parse', 'HEAD'), await gitDone(bare, 'rev-parse', 'main'));
  const other = path.join(await openFolder(t), 'other');
  await gitDone(path.dirname(other), 'clone', '--quiet', bare, other);
  const made = await commitFile(other, 'news.txt', 'news');
  await gitDone(other, 'push', '--quiet', 'origin', 'HEAD:main');
  await gitDone(folder, 'fetch', '--quiet');
  t.equal(await gitDone(folder, 'rev-parse', 'origin/main'), made);
  t.match(origin.calls.at(-1)?.headers, { 'git-protocol': 'version=2' }, 'in the version that git speaks');
  t.match((await refs(coder.url())).headers.get('cache-control'), /no-cache/);
  for (const service of services) {
    const { status, headers, text } = await refs(coder.url('Acme/SHOP.git'), service);
    t.same([status, headers.get('content-type')], [200, `application/x-${service}-advertisement`]);
    t.equal(/\0.* atomic /.test(text), service === 'git-receive-pack', 'of pushes: all or nothing');
  }
});

t.test('a repository of 500 refs is fetched by a compressed request, and a shallow one by its end alone', async (t) => {
  const many = await seedRepository(t, origin, 'acme/many');
  const work = path.join(await openFolder(t), 'work');
  await gitDone(path.dirname(work), 'clone', '--quiet', many, work);
  // Each of its own, so that a client asks for each.
  await importCommits(work, 500);
  await gitDone(work, 'push', '--quiet', '--all', 'origin');
  const coder = await createCoder(world, { repositories: ['many'] });
  const folder = path.join(await openFolder(t), 'clone');
  for (const version of ['0', '2']) {
    const before = origin.calls.length;
    const to = `${folder}-${version}`;
    await gitDone(
      path.dirname(to),
      '-c',
      `protocol.version=${version}`,
      'clone',
      '--quiet',
      coder.url('acme/many'),
      to,
    );
    t.equal((await gitDone(to, 'branch', '--remotes')).split('\n').length, 502);
    const fetched = origin.calls.slice(before).filter(({ url }) => url.endsWith('/git-upload-pack'));
    t.ok(
      fetched.some(({ headers }) => headers['content-encoding'] === 'gzip'),
      `version ${version}`,
    );
  }
  const shallow = `${folder}-shallow`;
  await gitDone(
    path.dirname(shallow),
    'clone',
    '--quiet',
    '--depth=1',
    '--branch=main',
    coder.url('acme/many'),
    shallow,
  );
  t.equal(await gitDone(shallow, 'rev-list', '--count', 'HEAD'), '1');
});

t.test('a client that leaves while it clones ends the call at the provider', async (t) => {
  const coder = await createCoder(world);
  t.teardown(() => {
    origin.faults.reply = undefined;
  });
  for (const isBegun of [false, true]) {
    const asked = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    origin.faults.reply = ({ url, method }, _req, res) => {
      if (method !== 'POST' || !url.endsWith('/git-upload-pack')) return false;
      res.once('close', left.resolve);
      if (isBegun) res.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' }).write('00');
      asked.resolve();
      return true;
    };
    const client = spawn('git', ['clone', coder.url(), 'left'], {
      cwd: await openFolder(t),
      env: gitEnvironment(),
      stdio: 'ignore',
      // A group of its own: it has a child that talks to the server.
      detached: true,
    });
    await asked.promise;
    if (client.pid === undefined) throw new Error('git did not start');
    process.kill(-client.pid, 'SIGKILL');
    await left.promise;
    t.pass(isBegun ? 'amid the response' : 'before it');
  }
});

t.test('what the settings do not name is not there', async (t) => {
  const coder = await createCoder(world);
  await seedRepository(t, origin, 'acme/theirs');
  await createCoder(world, { repositories: ['theirs'] });
  const names = ['acme/secret', 'acme/theirs', 'other/shop', 'acme/shop.wiki', 'acme/...', 'acme/.git'];
  const dots = ['.', '..', '%2e', '%2E%2e'];
  for (const name of [...names, ...dots.map((dot) => `acme/${dot}`)]) {
    t.equal(await refusals(coder.url(name)), '404 not_found', name);
  }
  // Nobody has such a name, so that no settings have.
  const owners = [...dots, '.acme', '-acme', 'ac.me', 'ac_me', 'a'.repeat(40)];
  for (const name of owners.flatMap((owner) => [`${owner}/shop`, `${owner}/..`])) {
    t.equal(await refusals(coder.url(name)), '400 validation_failed invalid_format', name);
  }
  t.equal(await refusals(coder.url(`${'a'.repeat(39)}/shop`)), '404 not_found');
  const { status, body } = await post(coder.url('acme/secret'), 'git-receive-pack', '0000');
  t.equal(status, 200, 'a probe asks for nothing');
  t.equal(body.length, 0);
  const cloned = await git(await openFolder(t), 'clone', coder.url('acme/secret'), 'x');
  t.match(cloned.stderr, /not found/);
});

t.test('a body that is none of git is refused as one', async (t) => {
  const coder = await createCoder(world);
  const line = (text: string) => String(pktLine(text));
  const [none, some] = ['0'.repeat(40), '1'.repeat(40)];
  const bodies = {
    'no lines': 'hello, git',
    'half a line': '0030abc',
    'no end': line(`${none} ${some} refs/heads/x`),
    'no update': `${line('hello')}0000`,
    'half of the options': `${line(`${none} ${some} refs/heads/x\0push-options`)}0000${line('a=b')}`,
  };
  for (const [name, body] of Object.entries(bodies)) {
    const reply = await post(coder.url(), 'git-receive-pack', body);
    t.equal(reply.status, 400, name);
    t.match(JSON.parse(String(reply.body)).error, { code: 'validation_failed', issues: [{ code: 'invalid_body' }] });
  }
});

async function post(url: string, service: string, body: string) {
  const { password, origin: at, pathname } = new URL(url);
  const response = await fetch(`${at}${pathname}/${service}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${password}`, 'content-type': `application/x-${service}-request` },
    body,
  });
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
}

t.test('only runs of engineering that do not verify reach repositories', async (t) => {
  const support = await createCoder(world, { profile: { department: 'support' } });
  t.equal(await refusals(support.url()), '409 state_conflict department');
  const operator = await createCoder(world, { profile: { kind: 'operator' } });
  t.equal(await refusals(operator.url()), '409 state_conflict department');

  const coder = await createCoder(world);
  const { runId } = coder.run;
  await app.database.owner.query(`update app.run_requests set mode = 'verify' where run_id = $1`, [runId]);
  t.equal(await refusals(coder.url()), '409 state_conflict verify_read_only');
  for (const service of services) t.equal((await post(coder.url(), service, '0000')).status, 409, 'nor a probe');
  await app.database.owner.query(`update app.run_requests set mode = 'plan' where run_id = $1`, [runId]);
  t.equal((await refs(coder.url())).status, 200, 'one that plans reads');
});

t.test('the client of a run that reaches no repository tells its person why', async (t) => {
  const support = await createCoder(world, { profile: { department: 'support' } });
  const operator = await createCoder(world, { profile: { kind: 'operator' } });
  const reviewer = await createCoder(world);
  await sql.owner.query(`update app.run_requests set mode = 'verify' where run_id = $1`, [reviewer.run.runId]);
  const work = path.join(await openFolder(t), 'work');
  await gitDone(path.dirname(work), 'clone', '--quiet', bare, work);
  await commitFile(work, 'told.txt', 'told');
  for (const [coder, reason] of [
    [support, 'only runs of engineering reach repositories'],
    [operator, 'only runs of engineering reach repositories'],
    [reviewer, 'a run that verifies reaches no repository'],
  ] as const) {
    for (const args of [
      ['clone', coder.url(), 'taken'],
      ['fetch', coder.url()],
      ['push', coder.url(), 'HEAD:refs/heads/mine'],
    ]) {
      const { code, stderr } = await git(work, ...args);
      t.not(code, 0, `${args[0]} fails`);
      t.match(stderr, `remote: Repositories are not available to this execution: ${reason}\n`, `${args[0]}: ${reason}`);
      t.match(stderr, /returned error: 409/);
      t.notMatch(stderr, coder.capability);
    }
  }
  const missing = await git(work, 'fetch', (await createCoder(world)).url('acme/other'));
  t.match(missing.stderr, 'remote: The integration has no such repository.');
});

t.test('a run that verifies gets no capability of git, and with one of tools no repository', async (t) => {
  const coder = await createCoder(world);
  const { org, integrationId } = coder;
  const fields = { key: 'reviewer', kind: 'department', department: 'engineering' };
  const reviewer = await createSecondProfile(sql, org, fields);
  await allow(sql, reviewer, 'git.read', 'git.propose', 'integrations.read');
  const made = await runTask(app, org, { spec: { verification: 'agent', verifierProfileKey: 'reviewer' } });
  expectSuccess(await workerOf(app, made).complete());
  const run = await runNext(app, org);
  t.equal(run.taskId, made.taskId);
  const authorization = { authorizationEpoch: await authorizationEpoch(sql, org.organizationId) };
  const asked = await app.owner
    .as(run.executionToken)
    .post(agentPath(org, '/integrations/resolve'), { integrationKey: integrationId, kind: 'git', ...authorization });
  t.equal(refusalOf(asked), '409 state_conflict verify_read_only');
  const { capability } = await resolveGit(world, org, integrationId, run, 'cli');
  t.equal(await refusals(coder.url().replace(coder.capability, capability)), '401 agent_unauthorized');
});

t.test('a capability is good for its integration, its execution and its time', async (t) => {
  const coder = await createCoder(world);
  const stranger = await createCoder(world);
  const mixed = coder.url().replace(coder.integrationId, stranger.integrationId);
  t.equal(await refusals(mixed), '401 agent_unauthorized', 'of another organization');
  await allow(sql, coder.org, 'git.read', 'integrations.read');
  t.equal(await refusals(coder.url()), '409 state_conflict stale_epoch');
  const cli = await resolveGit(world, coder.org, coder.integrationId, coder.run, 'cli');
  t.equal(
    await refusals(coder.url().replace(coder.capability, cli.capability)),
    '401 agent_unauthorized',
    'of another kind',
  );
  const renewed = await resolveGit(world, coder.org, coder.integrationId, coder.run);
  const url = coder.url().replace(coder.capability, renewed.capability);
  t.equal((await refs(url)).status, 200);
  const without = await fetch(`${app.url}${new URL(url).pathname}/info/refs?service=git-upload-pack`);
  t.same(
    [without.status, without.headers.get('www-authenticate')?.slice(0, 5)],
    [401, 'Basic'],
    'so that git asks for it',
  );
  await app.database.owner.query(
    'update app.integration_gateway_capabilities set expires_at = now() where run_id = $1',
    [coder.run.runId],
  );
  t.equal(await refusals(url), '401 agent_unauthorized', 'over');
  const cloned = await git(await openFolder(t), 'clone', url, 'x');
  t.match(cloned.stderr, /Authentication failed/);
});

t.test('what the provider says is named by code, and its token appears nowhere', async (t) => {
  const coder = await createCoder(world);
  const cases = [
    [403, '502 provider_failed forbidden'],
    [404, '502 provider_failed not_found'],
    [500, '503 provider_unavailable unavailable'],
    [429, '503 provider_unavailable rate_limited'],
    [301, '502 provider_failed failed'],
  ] as const;
  t.teardown(() => {
    origin.faults.reply = undefined;
  });
  for (const [status, expected] of cases) {
    origin.faults.reply = (_call, _req, res) => {
      res.writeHead(status, { location: '/acme/secret.git/info/refs?service=git-upload-pack' }).end(TOKEN);
      return true;
    };
    // The limit that a provider tells is kept for the account.
    const one = await createCoder(world);
    t.match(await refusal(one.url()), expected);
  }
  origin.faults.reply = (_call, _req, res) => {
    res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hello</h1>');
    return true;
  };
  t.equal(await refusal((await createCoder(world)).url()), '502 provider_failed failed');
  origin.faults.reply = (_call, _req, res) => {
    res.writeHead(200, { 'content-type': 'application/x-git-receive-pack-advertisement' }).end('0008NAK\n0000');
    return true;
  };
  t.equal(await refusal((await createCoder(world)).url(), 'git-receive-pack'), '502 provider_failed failed');
  origin.faults.reply = undefined;
  t.equal((await refs(coder.url())).status, 200);
  t.notOk(JSON.stringify(app.logged).includes(TOKEN));
  t.notOk(JSON.stringify(app.logged).includes(Buffer.from(`x-access-token:${TOKEN}`).toString('base64')));
  for (const file of await readdir(app.config.git.folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (file.isFile()) t.notOk((await readFile(path.join(file.parentPath, file.name))).includes(TOKEN), file.name);
  }
});
