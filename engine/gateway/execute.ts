import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { call, ignored } from '../db/call.ts';
import { isTransient, isUnavailable } from '../db/errors.ts';
import { Problem } from '../db/problem.ts';
import { integrationProblem, type OpenConnection, useConnection } from '../integrations/index.ts';
import { ProviderError } from '../providers/outgoing/index.ts';
import type { ToolFile, WriteCall, Writes } from '../providers/tool.ts';
import { storableFault } from '../storable.ts';
import { type ActionFile, actionFiles, hashActionFiles } from './files.ts';
import type { Gateway } from './gateway.ts';
import { within } from './tools.ts';

/** For refreshing tokens and reading the files, before the intent. */
const PREPARE_SECONDS = 300;
/** Beyond the time-out of the call: it is begun while so much of the lease is left. */
const SPARE_MS = 5_000;
/** For what comes after the provider's response. */
const GRACE_MS = 30_000;
const LOOK_UP_SECONDS = 300;
const LOOK_UP_MS = 20_000;
/** Until one is tried again whose connection could not be opened. */
const POSTPONED_S = 30;
const LONGEST_POSTPONED_S = 900;
const MAX_RESULT_BYTES = 64 * 1024;
const RECORD_TRIES = 5;

const actionSchema = z.object({
  id: z.uuid(),
  integration_id: z.uuid(),
  kind: z.enum(['provider_write', 'git_push']),
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  timeout_ms: z.int(),
  files: z.array(
    z.object({
      argument: z.string(),
      name: z.string(),
      contentType: z.string(),
      sizeBytes: z.int(),
      sha256: z.string(),
    }),
  ),
});
type Action = z.output<typeof actionSchema>;

const leasedSchema = z.discriminatedUnion('leased', [
  z.object({ leased: z.literal(false) }),
  z.object({
    leased: z.literal(true),
    purpose: z.enum(['execute', 'look_up']),
    action: actionSchema,
    connectionRevision: z.int(),
    storageKeys: z.record(z.string(), z.string()),
  }),
]);
type Leased = Extract<z.output<typeof leasedSchema>, { leased: true }>;
const begunSchema = z.object({ begun: z.boolean() });

export type ActionPlace = Readonly<{ organizationId: string; actionId: string }>;
type Held = ActionPlace & Readonly<{ leaseId: string }>;
export type Executing = Gateway & Readonly<{ approvalDays: number }>;

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

/** What is kept of what the provider says. */
function resultOf(result: unknown): unknown {
  const value = result ?? null;
  if (storableFault(value) || Buffer.byteLength(JSON.stringify(value)) > MAX_RESULT_BYTES) return null;
  return value;
}

function filesOf({ action, storageKeys }: Leased): readonly ActionFile[] {
  return action.files.map((file) => ({ ...file, storageKey: storageKeys[file.argument] ?? '' }));
}

/** What does it, with what it takes; or what keeps it from being sent. */
type Prepared = Readonly<{ runtime: Writes; args: unknown } | { obstacle: string }>;

function prepare({ provider, integration }: OpenConnection, { tool, arguments: given }: Action): Prepared {
  // The schema was kept at the proposal: a server's own tool that has another one by now is another tool.
  const runtime = provider.runtime({ key: tool, effect: 'write', inputSchema: {} });
  if (runtime?.effect !== 'write') return { obstacle: 'tool_changed' };
  const parsed = runtime.parse(given, integration.settings);
  return 'args' in parsed ? { runtime, args: parsed.args } : { obstacle: 'settings_changed' };
}

type Leave = Readonly<{ runtime: Writes; args: unknown; untilMs: number }>;
type Outcome = Readonly<{ outcome: string; result?: unknown; error?: unknown; final?: boolean }>;

/** One attempt of a job at an action that it holds the lease of. */
class Execution {
  readonly #at: Executing;
  readonly #held: Held;
  readonly #leased: Leased;
  readonly #files: readonly ActionFile[];
  #leave: Leave | undefined;
  /** What the provider said to it last. */
  #said: ProviderError | undefined;

  constructor(at: Executing, held: Held, leased: Leased) {
    this.#at = at;
    this.#held = held;
    this.#leased = leased;
    this.#files = filesOf(leased);
  }

  get #db() {
    return this.#at.integrations.db;
  }

  get #target() {
    const { action, connectionRevision: revision } = this.#leased;
    return { organizationId: this.#held.organizationId, integrationId: action.integration_id, revision };
  }

  get #log() {
    const { organizationId, actionId } = this.#held;
    return this.#at.integrations.log.child({ organizationId, actionId });
  }

  #call({ context, access }: OpenConnection, args: unknown, timeoutMs: number): WriteCall {
    const signal = AbortSignal.timeout(timeoutMs);
    const { action } = this.#leased;
    const files: Readonly<Record<string, ToolFile>> = actionFiles(this.#at.storage, this.#files, signal);
    return { ...within({ ...context, signal }, timeoutMs), access, args, actionId: action.id, files };
  }

  /** The intent: whether it may be sent now. */
  async #begin(files: readonly unknown[], obstacle?: string): Promise<number | undefined> {
    const seconds = Math.ceil((this.#leased.action.timeout_ms + SPARE_MS + GRACE_MS) / 1_000);
    const from = performance.now();
    const args = { ...this.#held, seconds, files, approvalDays: this.#at.approvalDays, obstacle };
    const { begun } = await call(this.#db, 'action_begin', args, begunSchema);
    return begun ? from + seconds * 1_000 : undefined;
  }

  /** It is sent once; what the provider does not let in is sent again where the lease leaves the time, as nothing was done. */
  async #send(connection: OpenConnection, { runtime, args, untilMs }: Leave): Promise<unknown> {
    const timeoutMs = this.#leased.action.timeout_ms;
    for (;;) {
      if (performance.now() + timeoutMs + SPARE_MS > untilMs) throw new Error('the lease leaves no time to send it');
      try {
        this.#said = undefined;
        return await runtime.execute(this.#call(connection, args, timeoutMs));
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        this.#said = error;
        const waitMs = (error.retryNotBefore?.getTime() ?? 0) - Date.now();
        const isHeld = error.isOurs && error.reason === 'rate_limited';
        if (!isHeld || performance.now() + waitMs + timeoutMs + SPARE_MS > untilMs) throw error;
        await pause(Math.max(1, waitMs));
      }
    }
  }

  /** What came of it, if anybody can know. */
  async #try(): Promise<Outcome | undefined> {
    const { integrations, storage } = this.#at;
    try {
      return await useConnection(integrations, this.#target, async (connection) => {
        if (!this.#leave) {
          const prepared = prepare(connection, this.#leased.action);
          const files = await hashActionFiles(storage, this.#files);
          const untilMs = await this.#begin(files, 'obstacle' in prepared ? prepared.obstacle : undefined);
          if (untilMs === undefined || 'obstacle' in prepared) return undefined;
          this.#leave = { ...prepared, untilMs };
        }
        return { outcome: 'succeeded', result: resultOf(await this.#send(connection, this.#leave)) };
      });
    } catch (error) {
      if (!this.#leave) await this.#putOff(error);
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
      // Another one goes on.
      if (error.issues?.[0]?.code === 'lease_taken') return;
      const asProposed = this.#files.map(({ argument, sizeBytes, sha256 }) => ({ argument, sizeBytes, sha256 }));
      await this.#begin(asProposed, 'connection');
      return;
    }
    const waitMs = error instanceof ProviderError ? (error.retryNotBefore?.getTime() ?? 0) - Date.now() : 0;
    const seconds = Math.min(LONGEST_POSTPONED_S, Math.max(POSTPONED_S, Math.ceil(waitMs / 1_000)));
    this.#log.warn({ err: error, seconds }, 'an action is put off');
    await call(this.#db, 'action_release', { ...this.#held, seconds }, ignored);
  }

  async execute(): Promise<void> {
    const outcome = await this.#try();
    if (outcome) await this.#record(outcome);
  }

  async lookUp(): Promise<void> {
    let outcome: Outcome = { outcome: 'none' };
    try {
      outcome = await useConnection(
        this.#at.integrations,
        this.#target,
        async (connection) => {
          const prepared = prepare(connection, this.#leased.action);
          // Nobody but a person can say.
          if ('obstacle' in prepared || !prepared.runtime.lookUp) return { outcome: 'none', final: true };
          const found = await prepared.runtime.lookUp(this.#call(connection, prepared.args, LOOK_UP_MS));
          return found.outcome === 'found' ? { outcome: 'found', result: resultOf(found.result) } : found;
        },
        { evenDisabled: true, withinMs: LOOK_UP_MS },
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
        await call(this.#db, 'action_finish', { ...this.#held, outcome }, ignored);
        return;
      } catch (error) {
        if (tries >= RECORD_TRIES || !(isUnavailable(error) || isTransient(error))) throw error;
        await pause(250 * 2 ** tries);
      }
    }
  }
}

/**
 * Takes the lease of an action that is due, and executes it or looks up what became of it. Any number may: one has the lease. A process
 * that dies at any line leaves an action that is due again: before the intent to be executed, after it to be looked up.
 * @throws what the database says where it cannot be reached
 */
export async function executeAction(at: Executing, place: ActionPlace): Promise<void> {
  const held = { ...place, leaseId: randomUUID() };
  const args = { ...held, seconds: PREPARE_SECONDS, lookUpSeconds: LOOK_UP_SECONDS };
  const leased = await call(at.integrations.db, 'action_lease', args, leasedSchema);
  if (!leased.leased) return;
  const execution = new Execution(at, held, leased);
  await (leased.purpose === 'execute' ? execution.execute() : execution.lookUp());
}
