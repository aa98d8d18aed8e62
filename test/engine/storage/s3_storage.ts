import { randomUUID } from 'node:crypto';
import { ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import { openStorage } from '../../../engine/storage/index.ts';
import { type S3Settings, s3Location } from '../../../engine/storage/s3_location.ts';
import type { TestedStorage } from './contract.ts';

/** A client of the test's own, to look at a bucket past the tested code. */
export function s3Client(storageUrl: string, settings: S3Settings): S3Client {
  const { endpoint = '', region } = s3Location(storageUrl, settings);
  const { accessKeyId = '', secretAccessKey = '' } = settings.credentials ?? {};
  return new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
}

/** A prefix that nobody else has, with characters that need care in URLs, signatures and XML. */
export function oddPrefix(): string {
  return encodeURI(`${randomUUID()}/A b+ü&<%25>=~'(1)*`);
}

/** The storage at `storageUrl`, whose prefix nobody else uses. */
export function openS3Storage(storageUrl: string, settings: S3Settings): TestedStorage {
  const client = s3Client(storageUrl, settings);
  const { bucket, prefix } = s3Location(storageUrl, settings);
  return {
    storage: openStorage(storageUrl, settings),
    async unfinished() {
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix }));
      return Uploads.length;
    },
  };
}
