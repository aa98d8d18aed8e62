import { CreateBucketCommand } from '@aws-sdk/client-s3';
import t from 'tap';
import { openStorage } from '../../../../engine/storage/index.ts';
import { s3Client } from '../../../engine/storage/s3_storage.ts';
import { expectSuccess, refusalOf, storedKeys } from '../../../support/api_fixtures.ts';
import { declare, fileCalls, send, type Upload } from '../../../support/gateway_files.ts';
import { openGateway } from '../../../support/gateway_world.ts';
import { hasRadosgw, startRadosgw } from '../../../support/radosgw.ts';
import { s3Url } from '../../../support/s3.ts';
import { until } from '../../../support/wait.ts';
import { largeUpload } from './large_upload.ts';

const skip = hasRadosgw() ? false : 'radosgw, ceph-mon and ceph-osd are not installed';
const NOTE = declare('the note');

t.test('uploads by the URLs of a real S3 (runs only where radosgw is installed)', { skip }, async (t) => {
  t.setTimeout(1_000_000);
  const { endpoint, settings } = await startRadosgw(t, 6 * 1024 * 1024 * 1024);
  const storageUrl = s3Url('files', 'a b', endpoint);
  await s3Client(storageUrl, settings).send(new CreateBucketCommand({ Bucket: 'files' }));
  const gateway = await openGateway(t, { config: { storageUrl, aws: settings } });
  const { app } = gateway;

  t.test('what was declared is taken, completed, and does not change afterwards', async (t) => {
    const by = await gateway.caller();
    const file = fileCalls(by);
    const begun = expectSuccess(await file.begin(NOTE));
    t.ok(begun.uploadUrl.startsWith(endpoint), 'the URL is the store’s own');
    t.notOk(begun.uploadUrl.includes(settings.credentials?.secretAccessKey ?? '-'));
    t.equal(refusalOf(await file.complete(NOTE)), '409 state_conflict not_uploaded');
    t.equal((await send(begun, 'the note')).status, 200);
    t.same(expectSuccess(await file.complete(NOTE)), { fileId: file.fileId, ...NOTE });
    t.equal((await storedKeys(app, by.org)).length, 1, 'the upload is gone');
    t.equal((await send(begun, 'the note')).status, 200, 'the URL still works');
    t.equal(await (await file.get()).text(), 'the note');
    t.same(expectSuccess(await file.complete(NOTE)), { fileId: file.fileId, ...NOTE });
    t.equal((await storedKeys(app, by.org)).length, 1);
  });

  t.test('another length, another type and another digest are refused by the store, or by us', async (t) => {
    const by = await gateway.caller();
    const file = fileCalls(by);
    const begun = expectSuccess(await file.begin(NOTE));
    const refused = [
      await send(begun, 'the notes', { 'Content-Length': '9' }),
      await send(begun, 'the note', { 'Content-Type': 'text/html' }),
      await send(begun, 'the vote', { 'x-amz-checksum-sha256': Buffer.alloc(32).toString('base64') }),
      await fetch(begun.uploadUrl, { method: 'GET' }),
    ];
    for (const { status } of refused) t.equal(status, 403);
    // A store that knows no digests takes these bytes; one that does refuses them.
    const changed = await send(begun, 'the vote');
    t.ok([200, 400].includes(changed.status), `${changed.status}`);
    const expected =
      changed.status === 200 ? '400 validation_failed digest_differs' : '409 state_conflict not_uploaded';
    t.equal(refusalOf(await file.complete(NOTE)), expected);
    t.same(await storedKeys(app, by.org), []);
  });

  t.test('a URL takes nothing once its time is over', async (t) => {
    const storage = openStorage(storageUrl, settings);
    const object = { size: NOTE.sizeBytes, contentType: NOTE.contentType, sha256: NOTE.sha256 };
    const presigned = await storage.presignPut('organizations/a/b', object, 5);
    if (!presigned) throw new Error('no URL');
    const upload: Upload = { uploadUrl: presigned.url, method: 'PUT', headers: presigned.headers, expiresAt: '' };
    t.equal((await send(upload, 'the note')).status, 200);
    await until('it is over', async () => (await send(upload, 'the note')).status === 403, 20_000);
    t.equal((await send(upload, 'the note')).status, 403);
  });

  t.test('a file of 1 GiB goes with little memory', async (t) => {
    t.setTimeout(900_000);
    await largeUpload(t, gateway, 1024);
  });
});
