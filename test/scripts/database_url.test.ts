import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readConfig } from '../../engine/config.ts';
import { NoDatabaseError, operatorDatabaseUrl } from '../../scripts/database_url.ts';

const PASSWORDS = 'database-passwords.json';

/** A data folder whose Postgres seems to run at port 5999. */
async function folderOf(test: Test): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'database-url-test-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  await mkdir(path.join(folder, 'postgres'));
  await writeFile(path.join(folder, 'postgres', 'postmaster.pid'), '1\n/x\n1\n5999\n');
  return folder;
}

const urlOf = (folder: string) => operatorDatabaseUrl(readConfig({ DATA_DIR: folder }));

t.test('the database of a running start is that of its port and its password', async (test) => {
  const folder = await folderOf(test);
  await writeFile(path.join(folder, PASSWORDS), '{"superuser":"secret"}');
  test.equal(urlOf(folder), 'postgres://postgres:secret@127.0.0.1:5999/business_runner');
  test.equal(
    await readFile(path.join(folder, PASSWORDS), 'utf8'),
    '{"superuser":"secret"}',
    'passwords of others neither',
  );
});

t.test('a password that is lost is not made anew by what only reads', async (test) => {
  const folder = await folderOf(test);
  test.throws(() => urlOf(folder), NoDatabaseError);
  test.same(await readdir(folder), ['postgres']);
  for (const text of ['', '{}', '{"runner_api":"x"}']) {
    await writeFile(path.join(folder, PASSWORDS), text);
    test.throws(() => urlOf(folder), NoDatabaseError, text);
    test.equal(await readFile(path.join(folder, PASSWORDS), 'utf8'), text);
  }
});
