import { PutObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { AskS3 } from './s3_client.ts';
import type { DeclaredObject, PresignedPut } from './storage.ts';

/** Signed as headers, so that a store refuses a body of another length or type, and one that knows it another digest. */
const CHECKSUM = 'x-amz-checksum-sha256';

/** A URL by which one object can be put, for so many seconds. Nothing is sent; credentials may be asked for. */
export async function presignS3Put(
  ask: AskS3,
  target: Readonly<{ Bucket: string; Key: string }>,
  { size, contentType, sha256 }: DeclaredObject,
  seconds: number,
): Promise<PresignedPut> {
  const checksum = Buffer.from(sha256, 'hex').toString('base64');
  const command = new PutObjectCommand({
    ...target,
    ContentLength: size,
    ContentType: contentType,
    ChecksumSHA256: checksum,
  });
  const url = await ask((client) =>
    getSignedUrl(client, command, {
      expiresIn: seconds,
      // The presigner leaves the type unsigned, and moves the digest to the query, where no store compares it with the bytes.
      signableHeaders: new Set(['content-type']),
      unhoistableHeaders: new Set([CHECKSUM]),
    }),
  );
  return {
    url,
    headers: { 'Content-Type': contentType, 'Content-Length': String(size), [CHECKSUM]: checksum },
  };
}
