import { randomUUID } from 'node:crypto';
import { CreateBucketCommand, CreateMultipartUploadCommand } from '@aws-sdk/client-s3';
import t from 'tap';
import { openStorage } from '../../../../engine/storage/index.ts';
import { everyCall, MiB, mebibytes, storageContract } from '../../../engine/storage/contract.ts';
import { oddPrefix, openS3Storage, s3Client } from '../../../engine/storage/s3_storage.ts';
import { hasRadosgw, startRadosgw } from '../../../support/radosgw.ts';
import { s3Url } from '../../../support/s3.ts';

const skip = hasRadosgw() ? false : 'radosgw, ceph-mon and ceph-osd are not installed';

t.test('the s3 driver on Ceph (runs only where radosgw is installed)', { skip }, async (t) => {
  t.setTimeout(240_000);
  const { endpoint, settings } = await startRadosgw(t);
  const url = (prefix: string) => s3Url('files', prefix, endpoint);
  const client = s3Client(url(''), settings);
  await client.send(new CreateBucketCommand({ Bucket: 'files' }));

  storageContract(t, async () => openS3Storage(url(oddPrefix()), settings));

  t.test('uploads that nobody will finish go once they are old, page by page', async (t) => {
    const prefix = randomUUID();
    const { storage, unfinished } = openS3Storage(url(prefix), settings);
    for (let index = 0; index < 203; index += 1) {
      await client.send(new CreateMultipartUploadCommand({ Bucket: 'files', Key: `${prefix}/a/${index}` }));
    }
    t.equal(await storage.removeAbandoned(3_600_000), 0);
    t.equal(await storage.removeAbandoned(0), 203);
    t.equal(await unfinished(), 0);
  });

  t.test('a wrong secret, a wrong key and a missing bucket say what they are', async (t) => {
    const { accessKeyId = '', secretAccessKey = '' } = settings.credentials ?? {};
    const wrong = [
      ['files', { accessKeyId, secretAccessKey: 'wrong' }, /credentials are refused \(403/],
      ['files', { accessKeyId: 'unknown', secretAccessKey }, /credentials are refused \(403/],
      ['missing', { accessKeyId, secretAccessKey }, /the bucket missing at .*: there is no such bucket/],
    ] as const;
    for (const [bucket, credentials, message] of wrong) {
      const storage = openStorage(s3Url(bucket, 'x', endpoint), { credentials });
      for (const [name, call] of Object.entries(everyCall(storage))) {
        await t.rejects(call(), { name: 'StorageUnavailableError', message }, `${bucket}: ${name}`);
      }
    }
  });

  t.test('uploads and downloads hold a few parts in memory', async (t) => {
    const { storage } = openS3Storage(url(randomUUID()), settings);
    await storage.put('a/warm', mebibytes(12));
    for await (const _ of await storage.get('a/warm'));
    const before = process.memoryUsage().rss;
    let highest = before;
    const look = () => {
      highest = Math.max(highest, process.memoryUsage().rss);
    };
    await storage.put('a/b', mebibytes(50), { observe: look });
    for await (const _ of await storage.get('a/b')) look();
    const grown = Math.round((highest - before) / MiB);
    t.comment(`${grown} MiB more for 50 MiB`);
    t.ok(grown < 80, `${grown} MiB more for 50 MiB up and down`);
  });
});
