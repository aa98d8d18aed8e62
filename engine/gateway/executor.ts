import { z } from 'zod';
import type { OpenConnection } from '../integrations/index.ts';
import { storableFault } from '../storable.ts';
import type { ActionFile } from './files.ts';

export const actionSchema = z.object({
  id: z.uuid(),
  integration_id: z.uuid(),
  kind: z.enum(['provider_write', 'git_push']),
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  /** Of a tool that has secret arguments, as it was at the proposal. */
  arguments_schema: z.record(z.string(), z.unknown()).nullable(),
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

/** An action as a job has it. */
export type LeasedAction = Readonly<{
  action: z.output<typeof actionSchema>;
  /** Of the tool that it was proposed by; null: a push. */
  toolDigest: string | null;
  files: readonly ActionFile[];
}>;

/** What came of an action, as `action_finish` takes it. */
export type Outcome = Readonly<{ outcome: string; result?: unknown; error?: unknown; final?: boolean }>;

/** What lies ready to be sent. */
export type Ready = Readonly<{
  /**
   * Sends it, once.
   * @returns what came of it; undefined: nobody knows
   * @throws ProviderError, which says whether it was done
   */
  send(connection: OpenConnection): Promise<Outcome | undefined>;
  /** Removes what was made for it. */
  close(): Promise<void>;
}>;

/** What executes actions of a kind. */
export type Executor = Readonly<{
  /** How long a call may take. */
  timeoutMs: number;
  /** What comes before the intent: nothing is sent. `obstacle`: why it cannot be, as a reason to cancel it. @throws ProviderError, Problem */
  prepare(connection: OpenConnection): Promise<Ready | Readonly<{ obstacle: string }>>;
  /** What became of one that was sent. @throws ProviderError, Problem */
  lookUp(connection: OpenConnection): Promise<Outcome>;
}>;

export const LOOK_UP_MS = 20_000;
const MAX_RESULT_BYTES = 64 * 1024;

/** What is kept of what the provider says. */
export function keptResult(result: unknown): unknown {
  const value = result ?? null;
  if (storableFault(value) || Buffer.byteLength(JSON.stringify(value)) > MAX_RESULT_BYTES) return null;
  return value;
}
