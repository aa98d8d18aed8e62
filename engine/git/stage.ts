import { createReadStream, createWriteStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describePush } from './describe.ts';
import type { Mirrors, Snapshot } from './mirrors.ts';
import { GitFailedError, gitText, runGit } from './program.ts';
import type { PushArguments } from './push_action.ts';
import type { RefUpdate } from './push_request.ts';
import { atomically, everyUpdate, type Refusals, staleRefusals } from './push_rules.ts';
import type { Remote } from './remote.ts';

/** The push cannot be taken; by ref, why. `unpack`: what is wrong with its pack. */
export class PushRefusedError extends Error {
  override name = 'PushRefusedError';
  readonly refusals: Refusals;
  readonly unpack: string;
  constructor(refusals: Refusals, unpack = 'ok') {
    super('the push is refused');
    this.refusals = refusals;
    this.unpack = unpack;
  }
}

/** The provider's branches are as the push wants them: there is nothing to do. */
export const ALREADY_THERE = 'already_there';

export type StagedPush = Readonly<{
  arguments: PushArguments;
  /** A pack without open ends: all that the provider does not have. */
  packFile: string;
}>;

type Update = RefUpdate & { newOid: string };

const refused = (updates: readonly RefUpdate[], reason: string, unpack?: string) =>
  new PushRefusedError(everyUpdate(updates, reason), unpack);

/** The line in which git says what is wrong with a pack. It is about what the client sent. */
function packProblem({ stderr }: GitFailedError): string {
  if (/unresolved deltas?|missing base|did not receive expected object/i.test(stderr))
    return 'builds on commits that the provider does not have: fetch first';
  const found = /^(?:fatal|error): (.+)$/m.exec(stderr)?.[1] ?? 'the pack is broken';
  return found.slice(0, 200);
}

type Staging = Readonly<{
  /** A repository with all that the provider has. */
  repository: string;
  snapshot: Snapshot;
  updates: readonly Update[];
  signal: AbortSignal;
}>;

/** Checks the pack, object by object, and adds it to the repository. @returns the file that it has there */
async function indexPack(
  packFile: string,
  maxBytes: number,
  { repository, updates, signal }: Staging,
): Promise<string> {
  const args = ['index-pack', '--stdin', '--fix-thin', '--strict', '--threads=2', `--max-input-size=${maxBytes}`];
  const input = createReadStream(packFile);
  try {
    const hash = /[0-9a-f]{40}/.exec(await gitText({ folder: repository, args, input, signal }))?.[0] ?? '';
    const folder = path.join(repository, 'objects', 'pack');
    const name = `pack-${hash}.pack`;
    // Of a pack without objects git keeps nothing.
    return (await readdir(folder)).includes(name) ? path.join(folder, name) : packFile;
  } catch (error) {
    if (!(error instanceof GitFailedError) || error.isOurs) throw error;
    throw refused(updates, 'the pack is refused', packProblem(error));
  } finally {
    input.destroy();
  }
}

/** A branch leads to a commit, and nothing that it reaches is missing. */
async function checkConnected({ repository, updates, signal }: Staging): Promise<void> {
  const input = updates.map(({ newOid }) => `${newOid}\n`).join('');
  const types = await gitText({ folder: repository, args: ['cat-file', '--batch-check=%(objecttype)'], input, signal });
  const lines = types.split('\n');
  const wrong = updates.flatMap(({ ref }, index): [string, string][] => {
    if (lines[index] === 'commit') return [];
    return [[ref, lines[index]?.endsWith('missing') ? 'the commit is missing' : 'is not a commit']];
  });
  if (wrong.length > 0) throw new PushRefusedError(atomically(updates, new Map(wrong)));
  const args = ['rev-list', '--objects', '--stdin', '--not', '--all', '--quiet'];
  try {
    await runGit({ folder: repository, args, input, signal });
  } catch (error) {
    if (!(error instanceof GitFailedError) || error.isOurs) throw error;
    throw refused(updates, 'builds on commits that neither the push nor the provider has: fetch first');
  }
}

export async function isAncestor(
  repository: string,
  old: string,
  current: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await runGit({ folder: repository, args: ['merge-base', '--is-ancestor', old, current], signal });
    return true;
  } catch (error) {
    if (error instanceof GitFailedError && error.exitCode === 1) return false;
    throw error;
  }
}

async function checkForward({ repository, updates, signal }: Staging): Promise<void> {
  const found = new Map<string, string>();
  for (const { ref, oldOid, newOid } of updates) {
    if (oldOid === null || (await isAncestor(repository, oldOid, newOid, signal))) continue;
    found.set(ref, 'non-fast-forward: the gateway does not rewrite branches');
  }
  if (found.size > 0) throw new PushRefusedError(atomically(updates, found));
}

export type StageOptions = Readonly<{
  mirrors: Mirrors;
  remote: Remote;
  updates: readonly RefUpdate[];
  /** The pack, as the client sends it. */
  pack: AsyncIterable<Uint8Array>;
  maxBytes: number;
  /** The caller's own; it outlives what is returned. */
  folder: string;
  signal: AbortSignal;
  /** Called when the whole of the pack has arrived. */
  onReceived?: () => void;
}>;

/** Receives the pack while the mirror is brought up to date; a client that goes ends both. */
async function receive(options: StageOptions, packFile: string, repository: string): Promise<Snapshot> {
  const { mirrors, remote, pack, signal, onReceived } = options;
  const gone = new AbortController();
  const snapshot = mirrors.snapshot(remote, repository, AbortSignal.any([signal, gone.signal]));
  snapshot.catch(() => {});
  try {
    await pipeline(Readable.from(pack), createWriteStream(packFile, { mode: 0o600 }), {
      signal,
    });
  } catch (error) {
    gone.abort(error);
    await snapshot.catch(() => {});
    throw error;
  }
  onReceived?.();
  return snapshot;
}

/**
 * Takes a push into a private repository, and checks it there as a server of git does: each object, what they lead to, the branches
 * that it builds on. Nothing of it reaches the provider.
 * @throws PushRefusedError, ProviderError, GitMissingError, MirrorTooLargeError, the error of the pack's source, the signal's reason
 */
export async function stagePush(options: StageOptions): Promise<StagedPush | typeof ALREADY_THERE> {
  const { remote, maxBytes, folder, signal } = options;
  const received = path.join(folder, 'received.pack');
  const repository = path.join(folder, 'repository.git');
  const snapshot = await receive(options, received, repository);
  const updates = options.updates.filter((update): update is Update => update.newOid !== null);
  const staging: Staging = { repository, snapshot, updates, signal };
  if (updates.every(({ ref, newOid }) => snapshot.refs.get(ref) === newOid)) return ALREADY_THERE;
  const stale = staleRefusals(updates, snapshot.refs);
  if (stale.size > 0) throw new PushRefusedError(stale);
  const packFile = await indexPack(received, maxBytes, staging);
  await checkConnected(staging);
  await checkForward(staging);
  return { arguments: await describePush(remote.name, updates, staging), packFile };
}
