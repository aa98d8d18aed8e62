import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { S3Settings } from '../../engine/storage/index.ts';
import type { TearDown } from './database.ts';

export type S3Server = Readonly<{
  /** Of the server itself, to be put behind a proxy or into a storage URL. */
  endpoint: string;
  /** A bucket that exists. */
  bucket: string;
  settings: S3Settings;
  /** The `STORAGE_URL` of a place of its own in the bucket. */
  storageUrl: (prefix?: string, endpoint?: string) => string;
}>;

/** The `STORAGE_URL` of a bucket that is served elsewhere than by AWS. */
export function s3Url(bucket: string, prefix: string, endpoint: string): string {
  return `s3://${bucket}/${prefix}?${new URLSearchParams({ endpoint })}`;
}

/** An S3 server that knows no signatures and keeps all in memory (fauxqs), with the buckets `files` and `others`. */
export async function startS3(t: TearDown): Promise<S3Server> {
  const child = fork(path.join(import.meta.dirname, 's3_server.ts'), [], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  t.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const [message] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if (typeof message !== 'object') throw new Error(`the S3 server ended with ${message}`);
  const endpoint: string = message.url;
  return {
    endpoint,
    bucket: 'files',
    settings: { credentials: { accessKeyId: 'test', secretAccessKey: 'of the tests' } },
    storageUrl: (prefix = '', through = endpoint) => s3Url('files', prefix, through),
  };
}
