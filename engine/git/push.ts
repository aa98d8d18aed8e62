import { createReadStream, createWriteStream } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { OpenConnection } from '../integrations/index.ts';
import { ProviderError } from '../providers/outgoing/index.ts';
import { type RecordedBytes, StorageBrokenError, StorageMissingError, verifying } from '../storage/index.ts';
import { openFolder, removeFolder, withFolder } from './folders.ts';
import type { Git } from './git.ts';
import { GitFailedError, runGit } from './program.ts';
import type { PushArguments } from './push_action.ts';
import { askRemote, failureOf, type Remote, remoteOf, secretsOf } from './remote.ts';
import { isAncestor } from './stage.ts';

/** `unanswered`: it was sent, or may have been, and nothing says what became of it. */
export type PushOutcome =
  | Readonly<{ outcome: 'succeeded'; result: PushResult }>
  | Readonly<{ outcome: 'failed'; error: Readonly<{ code: string; message: string }> }>
  | Readonly<{ outcome: 'unanswered' }>;

export type PushResult = Readonly<{ repository: string; refs: readonly Readonly<{ ref: string; oid: string }>[] }>;

/** `none`: the branches are neither as they were nor as the push wants them. */
export type PushLookUp =
  | Readonly<{ outcome: 'found'; result: PushResult }>
  | Readonly<{ outcome: 'absent' }>
  | Readonly<{ outcome: 'none' }>;

/** What is stored of a push does not fit what the provider has by now, or is no pack. */
export class PackUnusableError extends Error {
  override name = 'PackUnusableError';
}

/** A push that lies ready, with all that it needs: sending it takes as long as the provider does. */
export type PreparedPush = Readonly<{
  /**
   * Sends it, once. The provider applies all updates or none, and only while its branches are where they were.
   * @throws ProviderError with `rejected` where the provider does not accept the credential, so that nothing was done
   */
  send(connection: OpenConnection, signal: AbortSignal): Promise<PushOutcome>;
  /** Removes what was prepared. */
  close(): Promise<void>;
}>;

function remoteFor(connection: OpenConnection, { repository }: PushArguments): Remote {
  const [owner = '', name = ''] = repository.split('/');
  return remoteOf(connection, owner, name);
}

const resultOf = ({ repository, refs }: PushArguments): PushResult => ({
  repository,
  refs: refs.map(({ ref, newOid }) => ({ ref, oid: newOid })),
});

/** The bytes that were recorded when the push was proposed, or none. */
async function fetchPack({ storage }: Git, pack: RecordedBytes, file: string, signal: AbortSignal): Promise<void> {
  try {
    const source = await storage.get(pack.key, { signal });
    await pipeline(source, verifying(pack), createWriteStream(file, { mode: 0o600 }), { signal });
  } catch (error) {
    if (!(error instanceof StorageMissingError)) throw error;
    throw new StorageBrokenError(pack.key, 'missing', 'is no longer stored');
  }
}

/** All at once. Where one fails the others are ended, and awaited: they write to a folder that is removed then. */
async function allOrNone(
  signal: AbortSignal,
  begin: readonly ((signal: AbortSignal) => Promise<unknown>)[],
): Promise<void> {
  const ends = new AbortController();
  const either = AbortSignal.any([signal, ends.signal]);
  const work = begin.map((one) => one(either));
  try {
    await Promise.all(work);
  } catch (error) {
    ends.abort(error);
    await Promise.allSettled(work);
    throw error;
  }
}

async function addPack(repository: string, file: string, signal: AbortSignal): Promise<void> {
  const args = ['index-pack', '--stdin', '--fix-thin', '--threads=2'];
  try {
    await runGit({ folder: repository, args, input: createReadStream(file), signal });
  } catch (error) {
    if (!(error instanceof GitFailedError) || error.isOurs) throw error;
    throw new PackUnusableError('git does not take the pack', { cause: error });
  }
}

/** Flag, ref and reason of each line of `git push --porcelain`. */
function statusLines(stdout: string) {
  return [...stdout.matchAll(/^([ +\-*=!])\t[^\t\n]*:(refs\/[^\t\n]+)\t([^\n]*)$/gm)].map(([, flag, ref, text]) => ({
    flag,
    ref: ref ?? '',
    text: text ?? '',
  }));
}

function refusedOutcome(stdout: string): PushOutcome {
  const refused = statusLines(stdout).filter(({ flag }) => flag === '!');
  // Others are not applied since these are not.
  const first = refused.find(({ text }) => !/atomic (?:push failed|transaction failed)/.test(text)) ?? refused[0];
  if (!first || /remote failed to report status|\[remote failure\]/.test(first.text)) return { outcome: 'unanswered' };
  if (/\(stale info\)|\(fetch first\)|\(non-fast-forward\)|\(already exists\)/.test(first.text)) {
    const message = `${first.ref} was moved at the provider after the push: nothing was applied. Fetch, and push again.`;
    return { outcome: 'failed', error: { code: 'ref_moved', message } };
  }
  const text = first.text.trimEnd();
  const begin = text.indexOf('(');
  const quoted = begin >= 0 && text.endsWith(')') ? text.slice(begin + 1, -1) : '';
  const reason = quoted.replace(/\p{Cc}+/gu, ' ').slice(0, 200) || 'no reason';
  return { outcome: 'failed', error: { code: 'ref_refused', message: `The provider refuses ${first.ref}: ${reason}` } };
}

/** A response that says that the push was not taken; undefined: perhaps it was. */
function notTaken(error: ProviderError): PushOutcome | undefined {
  if (error.reason === 'unavailable' || error.reason === 'failed') return undefined;
  return { outcome: 'failed', error: { code: 'provider_failed', message: error.message } };
}

async function send(
  remote: Remote,
  given: PushArguments,
  repository: string,
  signal: AbortSignal,
): Promise<PushOutcome> {
  const { refs } = given;
  const leases = refs.map(({ ref, oldOid }) => `--force-with-lease=${ref}:${oldOid ?? ''}`);
  const specs = refs.map(({ ref, newOid }) => `${newOid}:${ref}`);
  const atomic = refs.length > 1 ? ['--atomic'] : [];
  const args = ['push', '--porcelain', '--no-verify', ...atomic, ...leases, remote.address, ...specs];
  const { provider, context } = remote.connection;
  const target = `${new URL(remote.url).host}/${remote.name}`;
  const call = { provider: provider.key, method: 'git push', target, buckets: [], signal };
  try {
    await context.client.counted(call, async () => {
      try {
        return await runGit({ folder: repository, args, signal, secrets: secretsOf(remote) });
      } catch (error) {
        if (!(error instanceof GitFailedError) || error.isOurs || statusLines(error.stdout).length > 0) throw error;
        throw failureOf(provider.key, error);
      }
    });
    return { outcome: 'succeeded', result: resultOf(given) };
  } catch (error) {
    if (error instanceof GitFailedError) return refusedOutcome(error.stdout);
    if (signal.aborted) return { outcome: 'unanswered' };
    if (!(error instanceof ProviderError) || error.reason === 'rejected') throw error;
    return notTaken(error) ?? { outcome: 'unanswered' };
  }
}

/**
 * Makes an approved push ready: a repository with what the provider has, and the stored pack in it, compared with its digest. It may
 * take minutes, so that it comes before the intent to send. Whichever process took the push, provider and storage are enough.
 * @throws Problem 404 where the settings no longer name the repository, StorageBrokenError, MirrorTooLargeError, PackUnusableError,
 *   ProviderError, GitMissingError, the signal's reason
 */
export async function prepareGitPush(
  git: Git,
  given: Readonly<{ connection: OpenConnection; arguments: PushArguments; pack: RecordedBytes; signal: AbortSignal }>,
): Promise<PreparedPush> {
  const { connection, arguments: push, pack, signal } = given;
  const remote = remoteFor(connection, push);
  await git.clean();
  const folder = await openFolder(git.stagingFolder);
  try {
    const repository = path.join(folder, 'repository.git');
    const file = path.join(folder, 'stored.pack');
    await allOrNone(signal, [
      (either) => fetchPack(git, pack, file, either),
      (either) => git.mirrors.snapshot(remote, repository, either),
    ]);
    await addPack(repository, file, signal);
    return {
      send: (current, ends) => send(remoteFor(current, push), push, repository, ends),
      close: () => removeFolder(folder),
    };
  } catch (error) {
    await removeFolder(folder);
    throw error;
  }
}

/** A few names: whoever does not respond by then is asked again later. */
const BRANCHES_MS = 60_000;

/** Where branches are at the provider. */
async function readBranches(remote: Remote, refs: PushArguments['refs'], folder: string, signal: AbortSignal) {
  const args = ['ls-remote', remote.address, ...refs.map(({ ref }) => ref)];
  const text = await askRemote(remote, { folder, args, signal });
  return new Map([...text.matchAll(/^([0-9a-f]{40})\t(\S+)$/gm)].map(([, oid, ref]) => [ref, oid]));
}

/** Whether the branches went on from the push: then it was applied, whoever moved them since. */
async function holdPush(git: Git, remote: Remote, { refs }: PushArguments, folder: string, signal: AbortSignal) {
  const repository = path.join(folder, 'repository.git');
  const snapshot = await git.mirrors.snapshot(remote, repository, signal);
  for (const { ref, newOid } of refs) {
    const current = snapshot.refs.get(ref);
    if (current === undefined || !(await isAncestor(repository, newOid, current, signal).catch(notThere))) return false;
  }
  return true;
}

/** Git does not know the commit. */
function notThere(error: unknown): false {
  if (error instanceof GitFailedError && !error.isOurs) return false;
  throw error;
}

/** Where the branches of a push are: as it wants them, as they were before it, or elsewhere. @throws ProviderError, the signal's reason */
export async function branchesAre(
  remote: Remote,
  { refs }: PushArguments,
  folder: string,
  signal: AbortSignal,
): Promise<'new' | 'old' | 'elsewhere'> {
  const asked = AbortSignal.any([signal, AbortSignal.timeout(BRANCHES_MS)]);
  const now = await readBranches(remote, refs, folder, asked);
  const are = (of: 'oldOid' | 'newOid') => refs.every((one) => (now.get(one.ref) ?? null) === one[of]);
  if (are('newOid')) return 'new';
  return are('oldOid') ? 'old' : 'elsewhere';
}

/**
 * What became of a push that was sent and not answered. What the provider says of its branches is strong: there is no later.
 * @throws Problem 404, ProviderError, GitMissingError, the signal's reason
 */
export async function lookUpGitPush(
  git: Git,
  given: Readonly<{ connection: OpenConnection; arguments: PushArguments; signal: AbortSignal }>,
): Promise<PushLookUp> {
  const { connection, arguments: push, signal } = given;
  const remote = remoteFor(connection, push);
  // Of the process that sent it, where that one died.
  await git.clean();
  return withFolder(git.stagingFolder, async (folder) => {
    const where = await branchesAre(remote, push, folder, signal);
    if (where === 'new') return { outcome: 'found', result: resultOf(push) };
    if (where === 'old') return { outcome: 'absent' };
    return (await holdPush(git, remote, push, folder, signal))
      ? { outcome: 'found', result: resultOf(push) }
      : { outcome: 'none' };
  });
}
