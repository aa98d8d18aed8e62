import { setTimeout as pause } from 'node:timers/promises';
import { withFolder } from './folders.ts';
import type { Git } from './git.ts';
import { MirrorTooLargeError } from './mirrors.ts';
import { type Propose, type ProposedPush, proposePush } from './propose.ts';
import { branchesAre } from './push.ts';
import { type PushRequest, readPushRequest } from './push_request.ts';
import { everyUpdate, refusalsOf } from './push_rules.ts';
import type { Remote } from './remote.ts';
import { KEEP_ALIVE, message, type PushReport, reportOf, takesBands } from './report.ts';
import { ALREADY_THERE, PushRefusedError, stagePush } from './stage.ts';

const KEEP_ALIVE_MS = 5_000;
/** Of all the work after the pack has arrived. */
const STAGE_MS = 900_000;

export type ReceiveOptions = Readonly<{
  /** Without an encoding, and bounded. */
  body: AsyncIterable<Uint8Array>;
  /** Why the execution may not push; null: it may. */
  refusal: string | null;
  /** Does something at the repository, with a connection that is open. It may fail before or after; it calls once. */
  withRemote<T>(run: (remote: Remote) => Promise<T>): Promise<T>;
  propose: Propose;
  /** What went wrong, as a sentence for the client. */
  explain(error: unknown): string;
  signal: AbortSignal;
}>;

/** Read to its end, so that the client hears what is said then. */
async function drain(rest: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _chunk of rest);
}

function refused({ updates }: PushRequest, reason: string, unpack = 'ok'): PushReport {
  return { unpack, results: everyUpdate(updates, reason), messages: [] };
}

const STAGED = 'It reaches the provider after that: you need not push again.';

/** By the status of its action: the reason that the report gives for each ref, and the message that git shows its user. */
function stateOf({ action: { id, status }, repeats }: ProposedPush): readonly [reason: string, text: string] {
  const staged = (how: string) =>
    [`${how}, as action ${id}`, `The push is staged: ${how}, as action ${id}. ${STAGED}`] as const;
  switch (status) {
    case 'awaiting_approval':
      if (repeats === null) return staged('awaiting approval');
      return [
        `awaiting approval, as action ${id}`,
        `Action ${repeats} pushed this before, and it was taken back since. The push is staged again: awaiting approval, as action ${id}. ${STAGED}`,
      ];
    case 'approved':
      return staged('approved, and about to be pushed');
    case 'executing':
      return staged('being pushed');
    case 'unknown':
      return [
        `pushed before, and a person has to find out what became of it: action ${id}`,
        `The push is not staged again: it was sent before, and nobody knows whether it reached the provider. Wait until a person has decided about action ${id}, then fetch, and push again what is missing.`,
      ];
    case 'succeeded':
      return [
        `pushed before, by action ${id}: fetch first`,
        `The push is not staged again: action ${id} has brought it to the provider. Fetch, and push what is missing.`,
      ];
    default:
      return [`action ${id} is ${status}`, `The push is not staged: action ${id} is ${status}. Push again.`];
  }
}

/** The branches of the client stay where they are: nothing has moved at the provider. */
function proposedReport(request: PushRequest, proposed: ProposedPush): PushReport {
  const [reason, text] = stateOf(proposed);
  return { ...refused(request, reason), messages: [proposed.action.summary, text] };
}

async function decide(
  git: Git,
  request: PushRequest,
  options: ReceiveOptions,
  onReceived: () => void,
): Promise<PushReport> {
  const { updates, rest } = request;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(STAGE_MS)]);
  return options.withRemote(async (remote) => {
    const refusals = options.refusal === null ? refusalsOf(request) : everyUpdate(updates, options.refusal);
    if (refusals.size > 0) {
      await drain(rest);
      return { unpack: 'ok', results: refusals, messages: [] };
    }
    return withFolder(git.stagingFolder, async (folder) => {
      const { mirrors, settings } = git;
      const place = { mirrors, remote, folder, maxBytes: settings.maxPushBytes, signal };
      try {
        const staged = await stagePush({ ...place, updates, pack: rest, onReceived });
        if (staged === ALREADY_THERE) {
          return { unpack: 'ok', results: new Map(updates.map(({ ref }) => [ref, null])), messages: [] };
        }
        const { organizationId } = remote.connection.target;
        const wasTakenBack = async () => (await branchesAre(remote, staged.arguments, folder, signal)) === 'old';
        const proposed = await proposePush(git, organizationId, staged, options.propose, signal, wasTakenBack);
        return proposedReport(request, proposed);
      } catch (error) {
        if (!(error instanceof PushRefusedError)) throw error;
        return { unpack: error.unpack, results: error.refusals, messages: [] };
      }
    });
  });
}

function sentenceOf(error: unknown, explain: ReceiveOptions['explain']): string {
  if (error instanceof MirrorTooLargeError) return 'the repository is too large for this service (GIT_MIRROR_BYTES)';
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return 'checking the push took too long: try again';
  return explain(error);
}

/**
 * Takes a push, and tells its client what became of it, as the bytes of a response. What goes wrong before the whole of the push has
 * arrived is thrown before the first byte; what goes wrong later the client hears as the result of its push.
 * @throws PktLineError, the errors of the body and of `withRemote`, GitMissingError, the signal's reason
 */
export async function* receivePack(git: Git, options: ReceiveOptions): AsyncGenerator<Buffer, void, void> {
  await git.clean();
  const request = await readPushRequest(options.body);
  // The client asks whether it may send more.
  if (!request) return;
  const received = Promise.withResolvers<'received'>();
  let report: PushReport | undefined;
  const work = decide(git, request, options, () => received.resolve('received')).then((done) => {
    report = done;
  });
  if ((await Promise.race([received.promise, work])) === 'received' && takesBands(request)) {
    yield message('Checking the push against the repository at its provider.');
  }
  const ends = new AbortController();
  const told = work.catch((error: unknown) => {
    options.signal.throwIfAborted();
    report = refused(request, sentenceOf(error, options.explain), 'the push was not staged');
  });
  // Whoever no longer reads has gone.
  told.catch(() => {});
  try {
    while (!report) {
      const tick = pause(KEEP_ALIVE_MS, 'tick', { signal: ends.signal }).catch(() => 'tick');
      if ((await Promise.race([told, tick])) === 'tick' && takesBands(request)) yield KEEP_ALIVE;
    }
  } finally {
    ends.abort();
  }
  yield reportOf(request, report);
}
