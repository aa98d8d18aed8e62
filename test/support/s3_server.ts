import { buildApp } from 'fauxqs';

type Upload = Readonly<{ bucket: string; key: string; uploadId: string; initiated: Date }>;
type Store = { createBucket(name: string): void; readonly multipartUploads: ReadonlyMap<string, Upload> };

/** Buckets that exist from the start. */
const BUCKETS = ['files', 'others'];

// S3 orders keys by their bytes, fauxqs as a reader would; this process does nothing else.
String.prototype.localeCompare = function (other: string) {
  return this < other ? -1 : this > other ? 1 : 0;
};

const escaped = (text: string) => text.replace(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`);

/** The response to ListMultipartUploads, which fauxqs does not know: ordered by key, by the pages that are asked for. */
function listUploads(store: Store, bucket: string, query: URLSearchParams): string {
  const { prefix = '', ['key-marker']: after = '', ['max-uploads']: size = '1000' } = Object.fromEntries(query);
  const all = [...store.multipartUploads.values()]
    .filter((upload) => upload.bucket === bucket && upload.key.startsWith(prefix) && upload.key > after)
    .sort((a, b) => a.key.localeCompare(b.key));
  const page = all.slice(0, Number(size));
  const rows = page.map(
    ({ key, uploadId, initiated }) =>
      `<Upload><Key>${escaped(key)}</Key><UploadId>${uploadId}</UploadId><Initiated>${initiated.toISOString()}</Initiated></Upload>`,
  );
  const last = page.at(-1);
  const next = last
    ? `<NextKeyMarker>${escaped(last.key)}</NextKeyMarker><NextUploadIdMarker>${last.uploadId}</NextUploadIdMarker>`
    : '';
  return `<?xml version="1.0" encoding="UTF-8"?><ListMultipartUploadsResult><IsTruncated>${all.length > page.length}</IsTruncated>${next}${rows.join('')}</ListMultipartUploadsResult>`;
}

/** fauxqs in a process of its own: it keeps objects in memory, which must not count as the memory of the tested code. */
async function main(): Promise<void> {
  // Not among its exports; the listing above has to look into it.
  const module = await import(new URL('./s3/s3Store.js', import.meta.resolve('fauxqs')).href);
  const store: Store = new module.S3Store();
  for (const bucket of BUCKETS) store.createBucket(bucket);
  const stores = { s3Store: store } as unknown as NonNullable<Parameters<typeof buildApp>[0]>['stores'];
  const app = buildApp({ logger: false, ...(stores ? { stores } : {}) });
  app.addHook('onRequest', async (request, reply) => {
    const { pathname, searchParams } = new URL(request.url, 'http://s3');
    if (request.method !== 'GET' || !searchParams.has('uploads')) return;
    const bucket = pathname.split('/')[1] ?? '';
    return reply.type('application/xml').send(listUploads(store, bucket, searchParams));
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ url: await app.listen({ host: '127.0.0.1', port: 0 }) });
}

await main();
