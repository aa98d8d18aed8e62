import { z } from 'zod';
import { call } from '../db/call.ts';
import { type Issue, Problem } from '../db/problem.ts';
import { integrationProblem } from '../integrations/index.ts';
import { mediaTypeProbe, signatureProblem } from '../media_types.ts';
import { invocationKey, type PresignedPut, StorageMissingError, StorageTooLargeError } from '../storage/index.ts';
import type { Gateway, GatewayCall } from './gateway.ts';
import { signTicket } from './upload_ticket.ts';

const UPLOAD_SECONDS = 900;

export type FileCall = GatewayCall & Readonly<{ fileId: string }>;
export type DeclaredFile = Readonly<{ name: string; contentType: string; sizeBytes: number; sha256: string }>;

export const invocationFileSchema = z.object({
  fileId: z.string(),
  name: z.string(),
  contentType: z.string(),
  sizeBytes: z.int(),
  sha256: z.string(),
});
export type InvocationFile = z.output<typeof invocationFileSchema>;

const begunSchema = z.object({ uploadKey: z.string() });
/** What `action_file_store` returns. */
export const storedFileSchema = z.object({
  file: invocationFileSchema.nullable(),
  stored: z.boolean(),
  uploadKey: z.string().nullable(),
});
const foundSchema = z.array(invocationFileSchema.extend({ storageKey: z.string() }));
export type FoundFile = z.output<typeof foundSchema>[number];

/** Stored files of an invocation, in this order. @throws Problem 401, 404, 409 */
export function findFiles(
  { integrations }: Gateway,
  at: GatewayCall,
  fileIds: readonly string[],
): Promise<FoundFile[]> {
  const { organizationId, tokenHash, integrationId, invocationId } = at;
  const args = { organizationId, tokenHash, integrationId, invocationId, fileIds };
  return call(integrations.db.of(organizationId), 'action_files_find', args, foundSchema);
}

/**
 * Begins an upload: a URL by which one object can be put that is what was declared. `urlOf`: where this API takes uploads, for a
 * storage without an address of its own.
 * @throws Problem 401, 409
 */
export async function beginUpload(
  { integrations, storage }: Gateway,
  at: FileCall,
  file: DeclaredFile,
  urlOf: (ticket: string) => string,
): Promise<PresignedPut & Readonly<{ expiresAt: string }>> {
  const db = integrations.db.of(at.organizationId);
  const fresh = invocationKey(at.organizationId, 'uploads');
  const args = { ...at, file, uploadKey: fresh, seconds: UPLOAD_SECONDS };
  const { uploadKey } = await call(db, 'action_file_begin', args, begunSchema);
  const expiresAt = new Date(Date.now() + UPLOAD_SECONDS * 1_000);
  const object = { size: file.sizeBytes, contentType: file.contentType, sha256: file.sha256 };
  const presigned = await storage.presignPut(uploadKey, object, UPLOAD_SECONDS);
  if (presigned) return { ...presigned, expiresAt: expiresAt.toISOString() };
  const ticket = await signTicket(integrations.settings.encryptionKeys, { key: uploadKey, ...object }, expiresAt);
  const headers = { 'Content-Type': file.contentType, 'Content-Length': String(file.sizeBytes) };
  return { url: urlOf(ticket), headers, expiresAt: expiresAt.toISOString() };
}

function issuesOf(
  declared: DeclaredFile,
  found: Readonly<{ size: number; sha256: string; mediaType: string }>,
): Issue[] {
  // Of other bytes nothing else can be said.
  if (found.size !== declared.sizeBytes) {
    const message = `the upload has ${found.size} bytes where ${declared.sizeBytes} are declared`;
    return [{ path: 'sizeBytes', code: 'size_differs', message }];
  }
  const problem = signatureProblem(declared.contentType, found.mediaType);
  return [
    ...(found.sha256 === declared.sha256
      ? []
      : [{ path: 'sha256', code: 'digest_differs', message: 'the upload has another digest' }]),
    ...(problem === null ? [] : [{ path: 'contentType', code: 'content_differs', message: problem }]),
  ];
}

type Copied = Readonly<{ storageKey: string } | { issues: readonly Issue[] }>;

/**
 * Copies an upload to where its holder cannot write, and compares what is copied.
 * @throws StorageMissingError, what `search` returns, StorageUnavailableError, the signal's reason
 */
async function copyCompared(
  { storage }: Gateway,
  { organizationId }: FileCall,
  uploadKey: string,
  declared: DeclaredFile,
  { search, signal }: CompleteOptions,
): Promise<Copied> {
  const probe = mediaTypeProbe('');
  const storageKey = invocationKey(organizationId, 'files');
  try {
    const stored = await storage.put(storageKey, await storage.get(uploadKey, { signal }), {
      maxBytes: declared.sizeBytes,
      signal,
      observe(chunk) {
        const refusal = search(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
        if (refusal) throw refusal;
        probe.observe(chunk);
      },
    });
    const issues = issuesOf(declared, { ...stored, mediaType: await probe.mediaType() });
    if (issues.length === 0) return { storageKey };
    await storage.delete(storageKey);
    return { issues };
  } catch (error) {
    if (!(error instanceof StorageTooLargeError)) throw error;
    const message = `the upload has more than the ${declared.sizeBytes} bytes that are declared`;
    return { issues: [{ path: 'sizeBytes', code: 'size_differs', message }] };
  }
}

export type CompleteOptions = Readonly<{
  /** Says why bytes are refused in which a token of ours ends. */
  search: (chunk: Buffer) => Problem | undefined;
  signal: AbortSignal;
}>;

/**
 * Completes an upload. What was declared is compared with a copy of it, which is what is stored: the URL changes nothing afterwards.
 * An upload that is something else is removed. A crash leaves the upload as it is, and the call can be sent again.
 * @throws Problem 400, 401, 404, 409; StorageUnavailableError, the signal's reason
 */
export async function completeUpload(
  gateway: Gateway,
  at: FileCall,
  declared: DeclaredFile,
  options: CompleteOptions,
): Promise<InvocationFile> {
  const { storage, integrations } = gateway;
  const db = integrations.db.of(at.organizationId);
  const store = (storageKey: string | null) =>
    call(db, 'action_file_store', { ...at, begun: true, file: declared, storageKey }, storedFileSchema);

  const { file, uploadKey } = await store(null);
  if (uploadKey === null) throw new TypeError('an upload that was begun has a place');
  if (file !== null) {
    await storage.delete(uploadKey);
    return file;
  }
  let copied: Copied;
  try {
    copied = await copyCompared(gateway, at, uploadKey, declared, options);
  } catch (error) {
    if (error instanceof Problem) await storage.delete(uploadKey);
    if (!(error instanceof StorageMissingError)) throw error;
    // Another call may have completed it meanwhile, and removed the upload.
    const now = await store(null);
    if (now.file !== null) return now.file;
    throw new Problem(409, 'state_conflict', 'Nothing was uploaded yet.', [
      { path: 'fileId', code: 'not_uploaded', message: 'send the bytes to the URL of the upload first' },
    ]);
  }
  if ('issues' in copied) {
    await storage.delete(uploadKey);
    throw new Problem(400, 'validation_failed', 'The upload is not what was declared, and was removed.', copied.issues);
  }
  const stored = await keptOrRemoved(gateway, copied.storageKey, store);
  await storage.delete(uploadKey);
  return stored;
}

/**
 * Records a copy. It goes where the record is refused, or another call was faster; where the outcome of the commit is unknown it stays,
 * for a row may name it, and else goes with what no row names.
 */
async function keptOrRemoved(
  { storage }: Gateway,
  storageKey: string,
  store: (storageKey: string) => Promise<z.output<typeof storedFileSchema>>,
): Promise<InvocationFile> {
  const { file, stored } = await store(storageKey).catch(async (error: unknown) => {
    const problem = integrationProblem(error);
    if (problem instanceof Problem && problem.status < 500) await storage.delete(storageKey);
    throw problem;
  });
  if (!stored) await storage.delete(storageKey);
  if (file === null) throw new TypeError('a stored file has a record');
  return file;
}
