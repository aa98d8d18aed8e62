import type { DocumentNode, GraphQLSchema } from 'graphql';
import { makeSchema } from 'postgraphile';
import { makePgAdaptorWithPgClient } from 'postgraphile/adaptors/pg';
import { execute } from 'postgraphile/grafast';
import { openPlainPool } from '../../../engine/db/plain_pool.ts';
import type { AdminContext } from '../context.ts';
import type { AdminTransitions } from '../transitions.ts';
import { readFacts } from './facts.ts';
import { adminPreset } from './preset.ts';
import { countBytes, readingOf } from './reading.ts';

export type Operation = Readonly<{
  document: DocumentNode;
  operationName: string | undefined;
  variables: Readonly<Record<string, unknown>>;
}>;

export type AdminSchema = Readonly<{
  schema: GraphQLSchema;
  /** Once `signal` is aborted no further statement begins. */
  execute(
    operation: Operation,
    caller: AdminContext,
    transitions: AdminTransitions,
    signal: AbortSignal,
  ): ReturnType<typeof execute>;
  close(): Promise<void>;
}>;

const IDLE_TIMEOUT_MS = 60_000;
/** As many requests are served at once, as each reads by one connection. */
export const CONNECTIONS = 4;

type SchemaOptions = Readonly<{
  /** With role and time-outs (engine/db/pool.ts). */
  url: string;
  /** Longest wait for the result of a statement. */
  responseTimeoutMs: number;
  onError: (error: Error) => void;
}>;

/** The schema over connections of its own, which read and cannot write. It takes seconds and some 150 MB. */
export async function buildAdminSchema({ url, responseTimeoutMs, onError }: SchemaOptions): Promise<AdminSchema> {
  const pool = openPlainPool({
    url,
    size: CONNECTIONS,
    responseTimeoutMs,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    lost(error, client) {
      // Others are ended here, for what they send is too much.
      if (!client || (budgets.get(client)?.left ?? 0) >= 0) onError(error);
    },
  });
  const budgets = countBytes(pool);
  try {
    const { schema, resolvedPreset } = await makeSchema(adminPreset(pool, await readFacts(pool)));
    const withPgClient = makePgAdaptorWithPgClient(pool);
    return {
      schema,
      execute({ document, operationName, variables }, caller, transitions, signal) {
        return execute({
          schema,
          document,
          ...(operationName === undefined ? {} : { operationName }),
          variableValues: variables,
          resolvedPreset,
          contextValue: {
            ...caller,
            transitions,
            withPgClient: readingOf(withPgClient, budgets, signal),
            pgSubscriber: null,
            // Always set, in the transaction of each statement: empty for all organizations.
            pgSettings: { 'app.organization_id': caller.organizationId ?? '' },
          },
        });
      },
      close: () => pool.end(),
    };
  } catch (error) {
    await pool.end();
    throw error;
  }
}
