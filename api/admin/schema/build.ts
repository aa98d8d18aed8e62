import type { DocumentNode, GraphQLSchema } from 'graphql';
import { Pool } from 'pg';
import { makeSchema } from 'postgraphile';
import { makePgAdaptorWithPgClient } from 'postgraphile/adaptors/pg';
import { execute } from 'postgraphile/grafast';
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

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 60_000;
/** As many requests are answered at once, as each reads by one connection. */
export const CONNECTIONS = 4;

/**
 * The schema over connections of its own, which read and cannot write. It takes seconds and some 150 MB, and is built
 * when somebody first asks for it. `url` carries role and time-outs (engine/db/pool.ts).
 */
export async function buildAdminSchema(url: string, onError: (error: Error) => void): Promise<AdminSchema> {
  const pool = new Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
  });
  // A connection that Postgres ends while it is idle.
  pool.on('error', onError);
  const budgets = countBytes(pool, onError);
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
