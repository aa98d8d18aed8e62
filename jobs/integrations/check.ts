import { sql } from 'slonik';
import { z } from 'zod';
import { call, ignored } from '../../engine/db/call.ts';
import { isTransient, isUnavailable } from '../../engine/db/errors.ts';
import { Problem } from '../../engine/db/problem.ts';
import { scoped } from '../../engine/db/scope.ts';
import {
  type ConnectionTarget,
  integrationProblem,
  markHealth,
  useConnection,
} from '../../engine/integrations/index.ts';
import { ProviderError } from '../../engine/providers/outgoing/index.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';
import { type Due, eachDue } from './due.ts';

const WITHIN_MS = 23_000;
/** Until one that could not be asked is looked at again. */
const POSTPONED_S = 3_600;

const revisionRow = z.object({ connection_revision: z.int() });

/** Undefined where it is gone. */
export async function readTarget({ db }: JobContext, due: Due): Promise<ConnectionTarget | undefined> {
  const { organization_id: organizationId, id: integrationId } = due;
  const row = await db.maybeOne(
    scoped(
      organizationId,
      revisionRow,
      sql.fragment`
        select i.connection_revision from app.integrations i
        where i.organization_id = scope.organization_id and i.id = ${integrationId}`,
    ),
  );
  return row ? { organizationId, integrationId, revision: row.connection_revision } : undefined;
}

/** It stays what it was: what kept us from asking says nothing about the provider. */
export async function postpone(
  { db }: JobContext,
  { organizationId, integrationId, revision }: ConnectionTarget,
  checkSeconds = POSTPONED_S,
) {
  const health = { postponed: true };
  const args = { organizationId, integrationId, connectionRevision: revision, health, checkSeconds };
  await call(db.of(organizationId), 'integration_health_mark', args, ignored);
}

/** What a failure says of the connection, unless it has been noted that its credential is refused. */
async function noteFailure(context: JobContext, target: ConnectionTarget, error: unknown): Promise<void> {
  const { integrations, log } = context;
  if (error instanceof ProviderError) {
    const { reason, status, retryNotBefore } = error;
    const isAway = reason === 'unavailable' || (reason === 'rate_limited' && status !== undefined);
    if (isAway) return markHealth(integrations, target, { code: 'provider_unavailable', retryNotBefore });
    // Without a status the limit is a budget of ours, and a blocked domain is the organization's wish.
    const isOurs = reason === 'rate_limited' || reason === 'blocked';
    if (!isOurs) return markHealth(integrations, target, { code: 'provider_failed' });
  } else if (!(integrationProblem(error) instanceof Problem)) {
    const { organizationId, integrationId } = target;
    log.error({ err: error, organizationId, integrationId }, 'a connection was not checked');
  }
  // Forbidden by the organization, replaced meanwhile, or not to be asked for another reason.
  await postpone(context, target);
}

async function check(context: JobContext, due: Due): Promise<void> {
  const { integrations, signal } = context;
  const target = await readTarget(context, due);
  if (!target) return;
  try {
    await useConnection(
      integrations,
      target,
      (connection) => connection.provider.verify(connection.context, connection.access),
      { signal, evenDisabled: true, withinMs: WITHIN_MS },
    );
    await markHealth(integrations, target, {});
  } catch (error) {
    if (signal.aborted) return;
    if (isTransient(error) || isUnavailable(error)) throw error;
    await noteFailure(context, target, error);
  }
}

/**
 * Asks the providers who the connections belong to: once a day, and again soon after a failure. A connection that works is ready again,
 * one whose credential is refused needs its authorization again. Dead anywhere, it is still due.
 */
export const integrationsCheck: JobHandler<'integrations__check'> = (_payload, context) =>
  eachDue(context, 'check', (due) => check(context, due));
