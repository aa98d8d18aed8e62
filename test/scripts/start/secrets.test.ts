import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { encryptionKeys } from '../../../engine/secrets/index.ts';
import { keptEncryptionKeys } from '../../../scripts/start/secrets.ts';

t.test('the encryption key is made once, for this user alone', async (test) => {
  const folder = test.testdir();
  const first = keptEncryptionKeys(folder);
  test.equal(first.file, path.join(folder, 'encryption-keys'));
  test.equal((await stat(first.file)).mode & 0o777, 0o600);
  test.equal(encryptionKeys.parse(first.keys).length, 1);
  test.same(keptEncryptionKeys(folder), first);
});

t.test('a damaged key file is named and stays', async (test) => {
  const folder = test.testdir();
  const { file, keys } = keptEncryptionKeys(folder);
  for (const damaged of ['', keys.slice(0, -4)]) {
    await writeFile(file, damaged);
    test.throws(() => keptEncryptionKeys(folder), { name: 'ConfigError', message: /encryption-keys is damaged/ });
    test.equal(await readFile(file, 'utf8'), damaged);
  }
});
