// Files of calls in both directions, as real bytes over HTTP.
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, mkdir, open, readdir, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import type { Storage } from '../../../../engine/storage/index.ts';
import { ownerApi, RETRY_AFTER_MS } from '../../../../scripts/command/api.ts';
import { saveFiles } from '../../../../scripts/command/call_downloads.ts';
import { storeFiles } from '../../../../scripts/command/call_files.ts';
import { capabilities } from '../../../../scripts/command/capabilities.ts';
import { createStop } from '../../../../scripts/command/stop.ts';
import { begin } from '../../../scripts/command/set_up.ts';
import { openFolder } from '../../../support/folders.ts';
import { type Caller, CHARGES, openGateway, REFUND } from '../../../support/gateway_world.ts';
import { startProxy } from '../../../support/proxy.ts';
import { until } from '../../../support/wait.ts';
import { useFileTools } from './file_tools.ts';
import { openRun, SHIM } from './set_up.ts';

const MiB = 1024 * 1024;
/** Beyond what one PUT takes. */
const LARGE = 33 * MiB;

t.setTimeout(120_000);
const world = await openGateway(t);
const { app, sql } = world;
const { storage } = app.services;

/** What happens at the storage, before the bytes of an upload are taken, and to those of a file that is read. */
const at: { upload?: (() => Promise<void>) | undefined; read?: ((bytes: Readable) => Readable) | undefined } = {};
const gated: Storage = {
  ...storage,
  async put(key, source, options) {
    if (key.includes('/uploads/')) await at.upload?.();
    return storage.put(key, source, options);
  },
  async get(key, options) {
    const bytes = await storage.get(key, options);
    return key.includes('/files/') && at.read ? at.read(bytes) : bytes;
  },
};
Object.assign(app.services, { storage: gated });

const { bring } = useFileTools(t);
t.afterEach(() => {
  at.upload = undefined;
  at.read = undefined;
});

function agentOf({ org, run }: Caller, url = app.url) {
  const environment = {
    BUSINESS_RUNNER_URL: url.replace(/\/$/, ''),
    BUSINESS_RUNNER_TOKEN: run.executionToken,
    BUSINESS_RUNNER_ORGANIZATION: org.organizationId,
  };
  return {
    begin: (...argv: string[]) => begin(environment, ...argv),
    call: (...argv: string[]) => begin(environment, ...argv).ended,
    /** The same by parts, with other limits. */
    context(timeoutMs?: number) {
      const stop = createStop();
      const api = ownerApi({ url: environment.BUSINESS_RUNNER_URL, token: run.executionToken, as: 'agent' });
      const home = `/internal/agent/organizations/${org.organizationId}`;
      const place = { api, home, token: run.executionToken ?? '', folder: undefined, signal: stop.signal };
      return { stop, capabilities: capabilities({ ...place, ...(timeoutMs === undefined ? {} : { timeoutMs }) }) };
    },
  };
}

/** A file of so many bytes, most of which are zeros that lie on no disk, and its digest. */
async function sparse(t: Test, size: number) {
  const file = path.join(await openFolder(t), 'film.bin');
  const handle = await open(file, 'w');
  await handle.write('begin');
  await handle.truncate(size);
  await handle.close();
  const hash = createHash('sha256').update('begin');
  hash.update(Buffer.alloc(size - 'begin'.length));
  return { file, sha256: hash.digest('hex') };
}

const filesOf = async ({ org }: Caller) => {
  const { rows } = await sql.owner.query(
    `select name, size_bytes, sha256, upload_key is not null as begun, storage_key is not null as stored
     from app.action_invocation_files where organization_id = $1 order by name`,
    [org.organizationId],
  );
  return rows;
};
const actionsOf = async ({ org }: Caller) => {
  const { rows } = await sql.owner.query('select id from app.actions where organization_id = $1', [org.organizationId]);
  return rows;
};

t.test('a file that one PUT does not take has a URL of its own, and the same call again is the same', async (t) => {
  const by = await world.caller();
  const { call } = agentOf(by);
  const { file, sha256 } = await sparse(t, LARGE);
  const named = ['call', 'shop', REFUND, '--file', `film=${file}`, '--invocation', randomUUID(), '--json'];
  const sent = await call(...named);
  t.equal(sent.status, 3, sent.err);
  const { action } = JSON.parse(sent.out);
  t.match(action.files, [{ argument: 'film', name: 'film.bin', sizeBytes: LARGE, sha256 }]);
  t.match(await filesOf(by), [{ name: 'film.bin', begun: true, stored: true }]);
  t.equal(JSON.parse((await call(...named)).out).action.id, action.id);
  t.equal((await filesOf(by)).length, 1);

  const small = path.join(path.dirname(file), 'small.txt');
  await writeFile(small, 'a');
  await call('call', 'shop', REFUND, '--file', `film=${small}`);
  t.match((await filesOf(by)).slice(1), [{ name: 'small.txt', begun: false }], 'a small one has none');
});

t.test('an upload whose connection breaks is sent anew', async (t) => {
  const by = await world.caller();
  const proxy = await startProxy(t, app.url);
  const { call } = agentOf(by, proxy.url);
  const { file, sha256 } = await sparse(t, LARGE);
  let uploads = 0;
  at.upload = async () => {
    uploads += 1;
    if (uploads > 1) return;
    proxy.cut();
    proxy.restore();
  };
  const sent = await call('call', 'shop', REFUND, '--file', `film=${file}`, '--json');
  t.equal(sent.status, 3, sent.err);
  t.match(JSON.parse(sent.out).action.files, [{ sizeBytes: LARGE, sha256 }]);
  t.equal(uploads, 2);
});

t.test('an API that is away when an upload is sent anew is asked as often as by any other call', async (t) => {
  const proxy = await startProxy(t, app.url);
  const { call } = agentOf(await world.caller(), proxy.url);
  const { file } = await sparse(t, LARGE);
  at.upload = async () => proxy.cut();
  const sent = await call('call', 'shop', REFUND, '--file', `film=${file}`);
  t.match(sent, { status: 69, out: '', err: /no Business Runner responds/ });
  t.equal(proxy.refused(), RETRY_AFTER_MS.length + 1);
});

t.test('a file that changes while it is sent is an error, and nothing is proposed', async (t) => {
  const by = await world.caller();
  const { call } = agentOf(by);
  const { file } = await sparse(t, LARGE);
  const { atime, mtime } = await stat(file);
  async function overwrite() {
    const handle = await open(file, 'r+');
    await handle.write('end', LARGE - 10);
    await handle.close();
    // So that its bytes alone tell.
    await utimes(file, atime, mtime);
  }
  for (const change of [() => appendFile(file, 'more'), overwrite, () => truncate(file, LARGE - 20)]) {
    await truncate(file, LARGE);
    await utimes(file, atime, mtime);
    at.upload = change;
    const ended = await call('call', 'shop', REFUND, '--file', `film=${file}`);
    t.match(ended, { status: 65, out: '', err: /^business-runner: \S+film\.bin changed while it was sent: / });
  }
  t.ok((await filesOf(by)).every(({ stored }) => !stored));
  t.same(await actionsOf(by), []);
});

t.test('Ctrl-C ends an upload, and one that stands still ends by itself', async (t) => {
  const by = await world.caller();
  const { file } = await sparse(t, LARGE);
  const agent = agentOf(by);
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  let uploads = 0;
  at.upload = () => {
    uploads += 1;
    return gate.promise;
  };
  const begun = agent.begin('call', 'shop', REFUND, '--file', `film=${file}`);
  await until('it is sent', () => uploads === 1);
  begun.interrupt();
  t.match(await begun.ended, { status: 130, out: '' });

  const place = { key: 'shop', invocationId: randomUUID(), idleMs: 300 };
  await t.rejects(storeFiles(agent.context(), place, [['film', file]]), {
    exit: 69,
    message: /^the upload of \S+film\.bin stood still for 0\.3 s, and was broken off$/,
  });
  t.ok(uploads <= 2, 'it is not tried again');
  t.same(await actionsOf(by), []);
});

t.test('what is no file of this kind is not sent', async (t) => {
  const by = await world.caller();
  const { call } = agentOf(by);
  const folder = await openFolder(t);
  const [empty, huge] = [path.join(folder, 'empty'), path.join(folder, 'huge')];
  await writeFile(empty, '');
  await writeFile(huge, '');
  await truncate(huge, 1024 * MiB + 1);
  for (const [file, status, err] of [
    [folder, 65, /is no file/],
    ['/dev/zero', 65, /is no file/],
    [empty, 65, /is empty/],
    [huge, 65, /has more than 1 GiB/],
    [`${empty}.none`, 66, /cannot be read \(ENOENT\)/],
  ] as const) {
    t.match(await call('call', 'shop', REFUND, '--file', `film=${file}`), { status, out: '', err });
  }
  t.same(await filesOf(by), []);
});

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  const handle = await open(file);
  for await (const chunk of handle.createReadStream()) hash.update(chunk);
  return hash.digest('hex');
}

t.test('a file that a read brings appears whole, and over nothing that is there', async (t) => {
  const { call } = agentOf(await world.caller());
  const folder = path.join(await openFolder(t), 'a/b');
  const sha256 = bring(LARGE);
  const seen = new Set<string>();
  at.read = (bytes) =>
    Readable.from(
      (async function* () {
        for await (const chunk of bytes) {
          for (const name of await readdir(folder)) seen.add(name);
          yield chunk;
        }
      })(),
    );
  const argv = ['call', 'shop', CHARGES, '--to', folder, '--invocation', randomUUID()];
  const saved = await call(...argv, '--json');
  t.equal(saved.status, 0, saved.err);
  t.match([...seen], [/^\.1-film\.bin\..*\.part$/], 'not before it is whole');
  const file = path.join(folder, '1-film.bin');
  t.match(JSON.parse(saved.out).files, [{ name: 'film.bin', sizeBytes: LARGE, sha256, path: file }]);
  t.equal(await digestOf(file), sha256);
  t.match(await call(...argv), { status: 1, out: '', err: /1-film\.bin was not saved \(EEXIST\)/ });
  t.same(await readdir(folder), ['1-film.bin']);
  await mkdir(path.join(folder, 'c'));
  await writeFile(path.join(folder, 'c/d'), '');
  t.match(await call(...argv.with(4, path.join(folder, 'c/d/e'))), { status: 1, err: /was not saved \(ENOTDIR\)/ });
});

/** Its first bytes, and then what `then` says. */
const cutBy = (then: () => Promise<void>) => (bytes: Readable) =>
  Readable.from(
    (async function* () {
      let sent = 0;
      for await (const chunk of bytes) {
        yield chunk;
        sent += chunk.length;
        if (sent >= MiB) return void (await then());
      }
    })(),
  );

t.test('a download that breaks off leaves nothing, and ends with the status of its reason', async (t) => {
  const by = await world.caller();
  const agent = agentOf(by);
  const folder = await openFolder(t);
  const sha256 = bring(4 * MiB);
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const part = async () => (await readdir(folder)).some((name) => /^\.1-film\.bin\..*\.part$/.test(name));
  const isThere = () => until('a part is there', part);

  at.read = cutBy(async () => {
    await isThere();
    throw new Error('broken');
  });
  const argv = ['call', 'shop', CHARGES, '--to', folder];
  t.match(await agent.call(...argv), { status: 69, out: '', err: /the download of \S+1-film\.bin broke off/ });
  t.same(await readdir(folder), []);

  at.read = cutBy(() => gate.promise);
  const begun = agent.begin(...argv);
  await isThere();
  begun.interrupt();
  t.match(await begun.ended, { status: 130, out: '' });
  t.same(await readdir(folder), []);

  const invocationId = randomUUID();
  const read = JSON.parse((await agent.call('call', 'shop', CHARGES, '--invocation', invocationId, '--json')).out);
  const saving = { key: 'shop', invocationId, files: read.files, folder };
  await t.rejects(saveFiles(agent.context(), { ...saving, idleMs: 200 }), {
    exit: 69,
    message: /^the download of \S+1-film\.bin stood still for 0\.2 s, and was broken off$/,
  });
  t.same(await readdir(folder), []);

  at.read = undefined;
  const other = read.files.map((one: object) => ({ ...one, sha256: 'a'.repeat(64) }));
  await t.rejects(saveFiles(agent.context(), { ...saving, files: other }), { exit: 69, message: /is not the file/ });
  t.same(await readdir(folder), []);

  // As long as bytes come, it may take longer than any other call.
  at.read = (bytes) =>
    Readable.from(
      (async function* () {
        for await (const chunk of bytes) {
          await new Promise((resolve) => setTimeout(resolve, 10));
          yield chunk;
        }
      })(),
    );
  const context = agent.context(300);
  const from = performance.now();
  const [file = ''] = await saveFiles(context, saving);
  t.ok(performance.now() - from > 300, `${performance.now() - from} ms`);
  t.equal(await digestOf(file), sha256);
});

t.test('a process that is ended while it downloads leaves nothing', async (t) => {
  const { org, run } = await world.caller();
  bring(4 * MiB);
  for (const [signal, code, by] of [
    ['SIGINT', 130, null],
    ['SIGTERM', null, 'SIGTERM'],
  ] as const) {
    const { folder, environment } = await openRun(t, {
      url: app.url,
      token: run.executionToken,
      organizationId: org.organizationId,
    });
    const to = path.join(folder, 'to');
    const gate = Promise.withResolvers<void>();
    t.teardown(() => gate.resolve());
    at.read = cutBy(() => gate.promise);
    const argv = [SHIM, 'call', 'shop', CHARGES, '--to', to];
    const child = spawn(process.execPath, argv, { cwd: folder, env: environment, stdio: 'ignore' });
    const ended = once(child, 'close');
    await until('a part is there', async () => (await readdir(to).catch(() => [])).length === 1);
    child.kill(signal);
    t.same(await ended, [code, by]);
    t.same(await readdir(to), []);
  }
});
