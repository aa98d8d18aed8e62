import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { call } from '../db/call.ts';
import { Problem, problemSchema } from '../db/problem.ts';
import { integrationProblem, tooLarge, tooMuch, useConnection, withoutCredential } from '../integrations/index.ts';
import { CursorError, type ReadResult, type ToolRuntime, TooMuchError } from '../providers/tool.ts';
import { invocationKey } from '../storage/index.ts';
import { checkFileNames } from './file_arguments.ts';
import { type Begun, begunSchema, type Gateway, type GatewayCall, type ToolRequest } from './gateway.ts';
import { type BroughtFile, keepFile } from './result_file.ts';
import { argumentsOf, isShort, runtimeOf, within } from './tools.ts';

/** Longer ones are an error that says how to ask for less. */
const MAX_RESULT_BYTES = 5 * 1024 * 1024;
/** Longer ones lie in the object storage. */
const MAX_ROW_BYTES = 64 * 1024;
/** For what comes after the provider's response. */
const GRACE_MS = 15_000;
const FIRST_POLL_MS = 50;
const LONGEST_POLL_MS = 500;

const outcomeSchema = z.object({
  state: z.enum(['running', 'responded', 'failed', 'over']),
  response: z.string().nullable(),
  responseKey: z.string().nullable(),
  failure: problemSchema.nullable(),
});

const finishedSchema = z.object({ finished: z.boolean() });

type Read = Readonly<{
  gateway: Gateway;
  at: GatewayCall;
  request: ToolRequest;
  bodySha256: string;
  signal: AbortSignal;
}>;

async function stored(
  { storage }: Gateway,
  { response, responseKey }: Readonly<{ response: string | null; responseKey: string | null }>,
  signal: AbortSignal,
): Promise<unknown> {
  if (response !== null) return JSON.parse(response);
  const chunks: Uint8Array[] = [];
  for await (const chunk of await storage.get(responseKey ?? '', { signal })) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** A result whose file, if there is one, is stored. */
type Result = Omit<ReadResult, 'file'> & Readonly<{ files: readonly BroughtFile[] }>;

/** The JSON of a result. @throws Problem 400 `result_too_large` */
function textOf({ data, nextCursor = null, files }: Result): string {
  const shown = files.map(({ storageKey: _, ...file }) => file);
  const text = JSON.stringify({ kind: 'result', data: data ?? null, nextCursor, files: shown });
  if (Buffer.byteLength(text) > MAX_RESULT_BYTES) throw tooLarge();
  return text;
}

async function ask({ gateway, at, request, signal }: Read, begun: Begun, runtime: ToolRuntime): Promise<Result> {
  if (runtime.effect !== 'read') throw new TypeError(`${begun.tool.key} is no read`);
  const args = argumentsOf(runtime, request.arguments, begun);
  checkFileNames(runtime, request);
  const { organizationId, integrationId } = at;
  const target = { organizationId, integrationId, revision: begun.integration.connectionRevision };
  try {
    return await useConnection(
      gateway.integrations,
      target,
      async ({ context, access, secrets }) => {
        const bounded = within(context, request.timeoutMs);
        const { file, ...result } = await runtime.read({ ...bounded, access, args, cursor: request.cursor });
        const named = file && {
          ...file,
          ...withoutCredential({ name: file.name, contentType: file.contentType }, secrets),
        };
        const files = named ? [await keepFile(gateway.storage, organizationId, named, bounded.context.signal)] : [];
        return { ...withoutCredential(result, secrets), files };
      },
      { signal, withinMs: request.timeoutMs, isShort: isShort(request.timeoutMs) },
    );
  } catch (error) {
    if (error instanceof CursorError) {
      throw new Problem(400, 'validation_failed', 'The cursor is not valid.', [
        { path: 'cursor', code: 'invalid_cursor', message: error.message },
      ]);
    }
    throw error instanceof TooMuchError ? tooMuch(error.message) : integrationProblem(error, 'arguments');
  }
}

function finish({ gateway, at }: Read, begun: Begun, leaseId: string, outcome: Readonly<Record<string, unknown>>) {
  const { organizationId, integrationId, invocationId } = at;
  const { runId } = begun.execution;
  const db = gateway.integrations.db.of(organizationId);
  return call(
    db,
    'action_invocation_finish',
    { organizationId, runId, integrationId, invocationId, leaseId, outcome },
    finishedSchema,
  );
}

/**
 * The outcome that those who wait for it get, too. Nothing is bound by wrong arguments, which the caller mends under the same name, or where
 * the caller has left: another one goes on.
 */
function outcomeOf(error: unknown, signal: AbortSignal): Readonly<Record<string, unknown>> {
  if (signal.aborted) return {};
  if (!(error instanceof Problem)) {
    return { failure: { status: 503, code: 'service_unavailable', message: 'The call was broken off. Try again.' } };
  }
  const { status, code, message, issues } = error;
  return code === 'validation_failed' ? {} : { failure: { status, code, message, ...(issues ? { issues } : {}) } };
}

/** Keeps the response, with its files, for calls that come again. @returns whether it counts: else somebody else has begun it anew */
async function keep(read: Read, begun: Begun, leaseId: string, text: string, { files }: Result): Promise<boolean> {
  const { storage } = read.gateway;
  const brought = files.length > 0 ? { files } : {};
  if (Buffer.byteLength(text) <= MAX_ROW_BYTES) {
    return (await finish(read, begun, leaseId, { response: text, ...brought })).finished;
  }
  const responseKey = invocationKey(read.at.organizationId, 'responses');
  await storage.put(responseKey, Readable.from([Buffer.from(text)]), { signal: read.signal });
  const { finished } = await finish(read, begun, leaseId, { responseKey, ...brought });
  if (!finished) await storage.delete(responseKey);
  return finished;
}

/** Undefined: it came too late, and what somebody else has begun counts, whose files are there. */
async function lead(read: Read, begun: Begun, leaseId: string): Promise<unknown> {
  let files: readonly BroughtFile[] = [];
  const removeFiles = () => Promise.all(files.map(({ storageKey }) => read.gateway.storage.delete(storageKey)));
  try {
    const result = await ask(read, begun, runtimeOf(begun));
    files = result.files;
    const text = textOf(result);
    const counts = await keep(read, begun, leaseId, text, result);
    if (!counts) await removeFiles();
    return counts || files.length === 0 ? JSON.parse(text) : undefined;
  } catch (error) {
    // After a commit whose outcome is unknown a row may name them: what no row names goes by its age.
    if (error instanceof Problem) await removeFiles().catch(() => {});
    await finish(read, begun, leaseId, outcomeOf(error, read.signal)).catch((cause: unknown) => {
      read.gateway.integrations.log.warn({ err: cause, invocationId: read.at.invocationId }, 'a call was not recorded');
    });
    throw error;
  }
}

/** What the one who has begun it gets; undefined: that came to nothing. @throws Problem */
async function follow({ gateway, at, request, signal }: Read, leaseId: string): Promise<unknown> {
  const db = gateway.integrations.db.of(at.organizationId);
  const end = performance.now() + request.timeoutMs + GRACE_MS;
  for (let ms = FIRST_POLL_MS; ; ms = Math.min(LONGEST_POLL_MS, ms * 1.5)) {
    await pause(ms, undefined, { signal });
    const outcome = await call(db, 'action_invocation_read', { ...at, leaseId }, outcomeSchema);
    if (outcome.state === 'responded') return stored(gateway, outcome, signal);
    if (outcome.failure) {
      const { status, code, message, issues } = outcome.failure;
      throw new Problem(status, code, message, issues);
    }
    if (outcome.state === 'over' || performance.now() > end) return undefined;
  }
}

/**
 * Begins an invocation: of a read, its response, however many call it at once; of a write, what it is (`begun`), and nothing else.
 * @throws Problem 400, 401, 403, 404, 409, 502, 503; the signal's reason
 */
export async function readOrBegin(read: Read): Promise<Readonly<{ response: unknown } | { begun: Begun }>> {
  const { gateway, at, request, bodySha256, signal } = read;
  const db = gateway.integrations.db.of(at.organizationId);
  const seconds = Math.ceil((request.timeoutMs + GRACE_MS) / 1_000);
  for (;;) {
    const leaseId = randomUUID();
    const args = { ...at, bodySha256, tool: request.tool, leaseId, seconds };
    const begun = await call(db, 'action_invocation_begin', args, begunSchema);
    if (begun.state === 'write') return { begun };
    if (begun.state === 'responded') return { response: await stored(gateway, begun, signal) };
    const response = begun.state === 'begun' ? await lead(read, begun, leaseId) : await follow(read, begun.leaseId);
    if (response !== undefined) return { response };
  }
}
