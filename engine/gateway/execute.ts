import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { call, ignored } from '../db/call.ts';
import { isTransient, isUnavailable } from '../db/errors.ts';
import { Problem } from '../db/problem.ts';
import type { Git } from '../git/index.ts';
import { integrationProblem, type OpenConnection, useConnection } from '../integrations/index.ts';
import { ProviderError, SHARED_HOLD_MS } from '../providers/outgoing/index.ts';
import { actionSchema, type Executor, type LeasedAction, type Outcome, type Ready } from './executor.ts';
import { hashActionFiles } from './files.ts';
import type { Gateway } from './gateway.ts';
import { pushExecutor } from './git_push.ts';
import { toolExecutor } from './write_tool.ts';

/** For refreshing tokens, before the intent; files have time of their own. */
const PREPARE_SECONDS = 120;
const PREPARE_PUSH_SECONDS = 600;
/** What a slow storage reads. */
const FILE_BYTES_PER_SECOND = 4 * 1024 * 1024;
/** Beyond the time-out of the call: it is begun while so much of the lease is left. */
const SPARE_MS = 5_000;
/** For what comes after the provider's response. */
const GRACE_MS = 30_000;
const LOOK_UP_SECONDS = 300;
/** Until one is tried again whose connection could not be opened. */
const POSTPONED_S = 30;
const LONGEST_POSTPONED_S = 900;
const RECORD_TRIES = 5;

const leasedSchema = z.discriminatedUnion('leased', [
  z.object({ leased: z.literal(false) }),
  z.object({
    leased: z.literal(true),
    purpose: z.enum(['execute', 'look_up']),
    action: actionSchema,
    toolDigest: z.string().nullable(),
    connectionRevision: z.int(),
    leaseSeconds: z.number(),
    storageKeys: z.record(z.string(), z.string()),
  }),
]);
type Leased = Extract<z.output<typeof leasedSchema>, { leased: true }>;
const begunSchema = z.object({ begun: z.boolean() });

export type ActionPlace = Readonly<{ organizationId: string; actionId: string }>;
type Held = ActionPlace & Readonly<{ leaseId: string }>;
export type Executing = Gateway &
  Readonly<{
    git: Git;
    approvalDays: number;
    /** For what comes before the intent, besides reading large files; default: as long as it may take. */
    prepareSeconds?: number;
  }>;

function executorOf({ storage, git }: Executing, leased: LeasedAction): Executor {
  return leased.action.kind === 'git_push' ? pushExecutor(git, leased) : toolExecutor(storage, leased);
}

/** Another one goes on with the action. */
function isLeaseTaken(error: unknown): boolean {
  return error instanceof Problem && error.issues?.[0]?.code === 'lease_taken';
}

/** What the provider refuses was not done; of anything else that goes wrong after it was sent, nobody knows. */
function wasRefused({ reason, status = 0, isRefusal }: ProviderError): boolean {
  if (isRefusal || (reason === 'failed' && status >= 400 && status < 500 && status !== 408)) return true;
  return ['rejected', 'forbidden', 'not_found', 'rate_limited', 'refused', 'blocked'].includes(reason);
}

function errorOf({ reason, message, status, code }: ProviderError) {
  const facts = [
    ...(status === undefined ? [] : [`status ${status}`]),
    ...(code === undefined ? [] : [`code ${code}`]),
  ];
  return { code: reason, message: facts.length === 0 ? message : `${message} (${facts.join(', ')})` };
}

/** `untilMs`: the end of the lease. */
type Intent = Readonly<{ ready: Ready; untilMs: number }>;

/** One attempt of a job at an action that it holds the lease of. */
class Execution {
  readonly #at: Executing;
  readonly #held: Held;
  readonly #leased: Leased;
  readonly #action: LeasedAction;
  readonly #executor: Executor;
  /** When reading the files has to be over, so that the lease can still be given back. */
  readonly #readUntilMs: number;
  /** Once the intent is committed. */
  #begun: Intent | undefined;
  #ready: Ready | undefined;
  /** What the provider said to it last. */
  #said: ProviderError | undefined;

  constructor(at: Executing, held: Held, { leased, readUntilMs }: Lease) {
    this.#at = at;
    this.#held = held;
    this.#leased = leased;
    this.#readUntilMs = readUntilMs;
    const { action, toolDigest, storageKeys } = leased;
    const files = action.files.map((file) => ({ ...file, storageKey: storageKeys[file.argument] ?? '' }));
    this.#action = { action, toolDigest, files };
    this.#executor = executorOf(at, this.#action);
  }

  get #target() {
    const { action, connectionRevision: revision } = this.#leased;
    return { organizationId: this.#held.organizationId, integrationId: action.integration_id, revision };
  }

  get #log() {
    const { organizationId, actionId } = this.#held;
    return this.#at.integrations.log.child({ organizationId, actionId });
  }

  #leavesTime(untilMs: number, waitMs = 0): boolean {
    return performance.now() + waitMs + this.#executor.timeoutMs + SPARE_MS <= untilMs;
  }

  /** The intent: until when it may be sent; undefined: it may not. What the limit of another organization holds back has the time. */
  async #begin(files: readonly unknown[], obstacle?: string): Promise<number | undefined> {
    const seconds = Math.ceil((this.#executor.timeoutMs + SPARE_MS + SHARED_HOLD_MS + GRACE_MS) / 1_000);
    const from = performance.now();
    const args = { ...this.#held, seconds, files, approvalDays: this.#at.approvalDays, obstacle };
    const { begun } = await call(this.#at.integrations.db, 'action_begin', args, begunSchema);
    return begun ? from + seconds * 1_000 : undefined;
  }

  /** @throws where they take longer than the lease: it is given back, and the log says why */
  #hashFiles() {
    const ms = Math.max(1, Math.floor(this.#readUntilMs - performance.now()));
    return hashActionFiles(this.#at.storage, this.#action.files, AbortSignal.timeout(ms));
  }

  /** Makes it ready, reads its files again, and commits the intent. */
  async #prepare(connection: OpenConnection): Promise<Intent | undefined> {
    const prepared = await this.#executor.prepare(connection);
    const obstacle = 'obstacle' in prepared ? prepared.obstacle : undefined;
    if (!('obstacle' in prepared)) this.#ready = prepared;
    const untilMs = await this.#begin(await this.#hashFiles(), obstacle);
    return untilMs === undefined || 'obstacle' in prepared ? undefined : { ready: prepared, untilMs };
  }

  /** It is sent once. What a budget of ours holds back was not, and is sent later where the lease leaves the time. */
  async #send(connection: OpenConnection, { ready, untilMs }: Intent) {
    for (;;) {
      if (!this.#leavesTime(untilMs)) throw new Error('the lease leaves no time to send it');
      try {
        this.#said = undefined;
        return await ready.send(connection);
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        this.#said = error;
        const waitMs = (error.retryNotBefore?.getTime() ?? 0) - Date.now();
        const isHeld = error.isOurs && error.reason === 'rate_limited';
        if (!isHeld || !this.#leavesTime(untilMs, waitMs)) throw error;
        await pause(Math.max(1, waitMs));
      }
    }
  }

  /** What came of it, if anybody can know. A credential that is refused is renewed, and it is sent again: nothing was done. */
  async #try(): Promise<Outcome | undefined> {
    try {
      return await useConnection(this.#at.integrations, this.#target, async (connection) => {
        this.#begun ??= await this.#prepare(connection);
        return this.#begun && (await this.#send(connection, this.#begun));
      });
    } catch (error) {
      if (!this.#begun) await this.#putOff(error);
      else if (this.#said && wasRefused(this.#said)) return { outcome: 'failed', error: errorOf(this.#said) };
      else this.#log.warn({ err: error }, 'an action got no response: it will be looked up');
      return undefined;
    }
  }

  /** Nothing was sent. */
  async #putOff(given: unknown): Promise<void> {
    // What the database refuses is an error of it until it is mapped.
    const error = given instanceof ProviderError ? given : integrationProblem(given);
    if (error instanceof Problem) {
      if (isLeaseTaken(error)) return;
      const asProposed = this.#action.files.map(({ argument, sizeBytes, sha256 }) => ({ argument, sizeBytes, sha256 }));
      await this.#begin(asProposed, 'connection');
      return;
    }
    const waitMs = error instanceof ProviderError ? (error.retryNotBefore?.getTime() ?? 0) - Date.now() : 0;
    const seconds = Math.min(LONGEST_POSTPONED_S, Math.max(POSTPONED_S, Math.ceil(waitMs / 1_000)));
    this.#log.warn({ err: error, seconds }, 'an action is put off');
    await call(this.#at.integrations.db, 'action_release', { ...this.#held, seconds }, ignored);
  }

  async execute(): Promise<void> {
    try {
      const outcome = await this.#try();
      if (outcome) await this.#record(outcome);
    } finally {
      await this.#ready?.close();
    }
  }

  async lookUp(): Promise<void> {
    let outcome: Outcome = { outcome: 'none' };
    try {
      outcome = await useConnection(
        this.#at.integrations,
        this.#target,
        (connection) => this.#executor.lookUp(connection),
        { evenDisabled: true },
      );
    } catch (error) {
      if (isUnavailable(error) || isTransient(error)) throw error;
      this.#log.info({ err: error }, 'a look-up of an action failed');
    }
    await this.#record(outcome);
  }

  /** Nobody else has the provider's response, so that it is not given up at once. */
  async #record(outcome: Outcome): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await call(this.#at.integrations.db, 'action_finish', { ...this.#held, outcome }, ignored);
        return;
      } catch (error) {
        if (isLeaseTaken(integrationProblem(error))) {
          const { outcome: came } = outcome;
          this.#log.warn(
            { outcome: came },
            'an action was looked up by another process before its response was recorded',
          );
          return;
        }
        if (tries >= RECORD_TRIES || !(isUnavailable(error) || isTransient(error))) throw error;
        await pause(250 * 2 ** tries);
      }
    }
  }
}

type Lease = Readonly<{ leased: Leased; readUntilMs: number }>;

async function takeLease(at: Executing, held: Held): Promise<Lease | undefined> {
  const { approvalDays, prepareSeconds } = at;
  const from = performance.now();
  const given = {
    ...held,
    seconds: prepareSeconds ?? PREPARE_SECONDS,
    pushSeconds: prepareSeconds ?? PREPARE_PUSH_SECONDS,
    lookUpSeconds: LOOK_UP_SECONDS,
    approvalDays,
    fileBytesPerSecond: FILE_BYTES_PER_SECOND,
  };
  const leased = await call(at.integrations.db, 'action_lease', given, leasedSchema);
  return leased.leased ? { leased, readUntilMs: from + leased.leaseSeconds * 900 } : undefined;
}

/**
 * Takes the lease of an action that is due, and executes it or looks up what became of it. Any number may: one has the lease. A process
 * that dies at any line leaves an action that is due again: before the intent to be executed, after it to be looked up.
 * @throws what the database says where it cannot be reached
 */
export async function executeAction(at: Executing, place: ActionPlace): Promise<void> {
  const held = { ...place, leaseId: randomUUID() };
  const lease = await takeLease(at, held);
  if (!lease) return;
  const execution = new Execution(at, held, lease);
  await (lease.leased.purpose === 'execute' ? execution.execute() : execution.lookUp());
}
