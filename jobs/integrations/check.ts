import { sql } from 'slonik';
import { z } from 'zod';
import { isTransient, isUnavailable } from '../../engine/db/errors.ts';
import { Problem } from '../../engine/db/problem.ts';
import { scoped } from '../../engine/db/scope.ts';
import {
  type ConnectionTarget,
  healthOf,
  integrationProblem,
  markHealth,
  type OpenConnection,
  recordDiscovery,
  shownDiscovery,
  useConnection,
} from '../../engine/integrations/index.ts';
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

/** Whose the connection is; and of a server with tools of its own what they are now, so that those that it has changed are off. */
async function look({ integrations }: JobContext, { provider, context, access, target, secrets }: OpenConnection) {
  if (!provider.hasServerTools) return void (await provider.verify(context, access));
  const { tools = [] } = shownDiscovery(await provider.discover(context, access), secrets);
  await recordDiscovery(integrations, target, { status: 'ok' }, tools);
}

async function check(context: JobContext, due: Due): Promise<void> {
  const { integrations, signal, log } = context;
  const target = await readTarget(context, due);
  if (!target) return;
  try {
    await useConnection(integrations, target, (connection) => look(context, connection), {
      signal,
      evenDisabled: true,
      isCheck: true,
      withinMs: WITHIN_MS,
    });
  } catch (error) {
    if (signal.aborted) return;
    if (isTransient(error) || isUnavailable(error)) throw error;
    const health = healthOf(error, 'check');
    // What the provider said is recorded.
    if (health.state !== 'not_asked') return;
    if (!(integrationProblem(error) instanceof Problem)) {
      const { organizationId, integrationId } = target;
      log.error({ err: error, organizationId, integrationId }, 'a connection was not checked');
    }
    // Forbidden by the organization, replaced meanwhile, or not to be asked for another reason: it stays what it was.
    await markHealth(integrations, target, health, { checkSeconds: POSTPONED_S });
  }
}

/**
 * Asks the providers who the connections belong to, and servers for their tools: once a day, and again soon after a failure. A
 * connection that works is ready again, one whose credential is refused needs its authorization again. Dead anywhere, it is still due.
 */
export const integrationsCheck: JobHandler<'integrations__check'> = (_payload, context) =>
  eachDue(context, 'check', (due) => check(context, due));
