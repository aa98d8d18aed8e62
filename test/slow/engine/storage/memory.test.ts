import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { MiB, mebibytes } from '../../../engine/storage/contract.ts';
import { oddPrefix, openS3Storage } from '../../../engine/storage/s3_storage.ts';
import { startS3 } from '../../../support/s3.ts';

const s3 = await startS3(t);

t.test('uploads and downloads hold a few parts in memory, whatever the size', async (t) => {
  const { storage } = openS3Storage(s3.storageUrl(oddPrefix()), s3.settings);
  await storage.put('a/warm', mebibytes(12));
  await buffer(await storage.get('a/warm'));
  const before = process.memoryUsage().rss;
  let highest = before;
  const look = () => {
    highest = Math.max(highest, process.memoryUsage().rss);
  };
  await storage.put('a/b', mebibytes(128), { observe: look });
  let size = 0;
  for await (const chunk of await storage.get('a/b')) {
    size += chunk.length;
    look();
  }
  t.equal(size, 128 * MiB);
  const grown = Math.round((highest - before) / MiB);
  t.comment(`${grown} MiB more for 128 MiB`);
  t.ok(grown < 80, `${grown} MiB more for 128 MiB up and down`);
});
