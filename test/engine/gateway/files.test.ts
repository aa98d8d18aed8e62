import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { type ActionFile, actionFiles, hashActionFiles } from '../../../engine/gateway/index.ts';
import { openStorage } from '../../../engine/storage/index.ts';
import { openFolder } from '../../support/folders.ts';

const storage = openStorage(pathToFileURL(await openFolder(t)).href);

async function stored(argument: string, text: string): Promise<ActionFile> {
  const storageKey = `files/${argument}`;
  const { size, sha256 } = await storage.put(storageKey, Readable.from([Buffer.from(text)]));
  return { argument, name: `${argument}.txt`, contentType: 'text/plain', sizeBytes: size, sha256, storageKey };
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex');

t.test('a tool reads each file anew, and gets what was recorded', async (test) => {
  const files = actionFiles(storage, [await stored('body', 'hello'), await stored('picture', 'lamp')]);
  test.same(Object.keys(files), ['body', 'picture']);
  const { body } = files;
  if (!body) throw new Error('no file');
  const { open, ...described } = body;
  test.same(described, { name: 'body.txt', contentType: 'text/plain', sizeBytes: 5, sha256: digest('hello') });
  for (let round = 0; round < 2; round += 1) {
    test.equal(String(await buffer((await open()) as Readable)), 'hello');
  }
  await storage.put('files/body', Readable.from([Buffer.from('jello')]));
  await test.rejects(buffer((await open()) as Readable), { name: 'StorageBrokenError', reason: 'changed' });
  await storage.delete('files/body');
  await test.rejects(open(), { name: 'StorageBrokenError', reason: 'missing' });
});

t.test('hashing says what lies there now, and leaves out what is gone', async (test) => {
  const files = [await stored('a', 'one'), await stored('b', 'two'), await stored('c', 'three')];
  await storage.put('files/b', Readable.from([Buffer.from('another')]));
  await storage.delete('files/c');
  test.same(await hashActionFiles(storage, files), [
    { argument: 'a', sizeBytes: 3, sha256: digest('one') },
    { argument: 'b', sizeBytes: 7, sha256: digest('another') },
  ]);
  await test.rejects(hashActionFiles(storage, files, AbortSignal.abort(new Error('over'))), { message: 'over' });
});
