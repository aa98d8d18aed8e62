import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { encryptionKeys, sealSecret } from '../../../engine/secrets/index.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { openFolder } from '../../support/folders.ts';
import { connect, createIntegration } from '../../support/integration_fixtures.ts';
import { openSql } from '../../support/transitions.ts';

t.setTimeout(120_000);
const root = path.resolve(import.meta.dirname, '../../..');
const sql = await openSql(t);

const listed = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;
const [first, second] = [listed('k1'), listed('k2')];

async function run(argv: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, ['scripts/keys.ts', '--no-env-file', ...argv], {
    cwd: root,
    env: { PATH: process.env['PATH'], DATABASE_URL: sql.url, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status, out, err };
}

t.test('keys are listed and rotated by the command, by setting and by file', async (test) => {
  const folder = await openFolder(test);
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org);
  const place = { organizationId: org.organizationId, integrationId: id, field: 'credential', revision: 1 };
  const { keyId, wrappedKey, ciphertext } = sealSecret(encryptionKeys.parse(first), place, 'planted-secret');
  const stored = { keyId, wrappedKey: wrappedKey.toString('base64'), ciphertext: ciphertext.toString('base64') };
  await connect(sql.api, org, id, undefined, { secrets: [{ field: 'credential', ...stored }] });

  test.match(await run(['list'], { DATA_DIR: folder }), { status: 1, err: /there are no keys: set ENCRYPTION_KEYS/ });
  const env = { DATA_DIR: folder, ENCRYPTION_KEYS: `${second},${first}` };
  const before = await run(['list'], env);
  test.match(before.out, /^k2 +0 records +encrypts what is new\nk1 +1 record +still needed: rotate\n$/);

  const file = path.join(folder, 'encryption-keys');
  await writeFile(file, `${second},${first}\n`);
  const lock = path.join(folder, 'start.lock');
  await writeFile(lock, '{}');
  const hourAgo = new Date(Date.now() - 3_600_000);
  await utimes(lock, hourAgo, hourAgo);
  test.match(await run(['rotate'], { DATA_DIR: folder }), { status: 1, err: /was changed after npm start began/ });
  await utimes(file, hourAgo, new Date(hourAgo.getTime() - 1000));
  test.same(await run(['rotate'], { DATA_DIR: folder }), { status: 0, out: 'wrapped 1 record by k2\n', err: '' });
  test.match((await run(['list'], env)).out, /k1 +0 records +not needed any more: may be taken out/);
  const missing = { DATA_DIR: folder, ENCRYPTION_KEYS: first };
  test.match((await run(['list'], missing)).out, /k2 +1 record +missing: put it back/);
  test.match(await run(['rotate'], missing), { status: 1, out: /k2 is missing, and has 1 record: put it back/ });

  test.match(await run([], env), { status: 64, out: /npm run keys/ });
  test.match(await run(['rotate', 'all'], env), { status: 64 });
  test.match(await run(['list', '--nonsense'], env), { status: 64 });
  const wrong = await run(['list'], { DATA_DIR: folder, ENCRYPTION_KEYS: 'k1:planted-secret' });
  test.match(wrong, { status: 78, err: /ENCRYPTION_KEYS/ });
  test.notMatch(wrong.err, /planted-secret/);
});
