import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { receiptKeys } from '../../../engine/receipts/index.ts';
import { encryptionKeys } from '../../../engine/secrets/index.ts';
import { keptEncryptionKeys, keptReceiptKeys } from '../../../scripts/start/secrets.ts';

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

t.test('the key of receipts is made once too, and a damaged one stays', async (test) => {
  const folder = test.testdir();
  const first = keptReceiptKeys(folder);
  test.equal(first.file, path.join(folder, 'receipt-keys'));
  test.equal((await stat(first.file)).mode & 0o777, 0o600);
  test.equal(receiptKeys.parse(first.keys).length, 1);
  test.same(keptReceiptKeys(folder), first);
  await writeFile(first.file, 'x');
  test.throws(() => keptReceiptKeys(folder), {
    name: 'ConfigError',
    message: /RECEIPT_KEYS: .*receipt-keys is damaged/,
  });
  test.equal(await readFile(first.file, 'utf8'), 'x');
});
