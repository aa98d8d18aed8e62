import { isTransient, isUnavailable } from '../../engine/db/errors.ts';
import { Problem } from '../../engine/db/problem.ts';
import { integrationProblem, markHealth, refreshConnection } from '../../engine/integrations/index.ts';
import { OAuthError } from '../../engine/providers/oauth/index.ts';
import { ProviderError } from '../../engine/providers/outgoing/index.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';
import { readTarget } from './check.ts';
import { type Due, eachDue } from './due.ts';

/** Until one is tried again whose refresh cannot begin: its provider is not allowed. */
const POSTPONED_S = 24 * 3_600;

async function refresh(context: JobContext, due: Due): Promise<void> {
  const { integrations, signal, log } = context;
  const target = await readTarget(context, due);
  if (!target) return;
  try {
    await refreshConnection(integrations, target, signal);
  } catch (error) {
    // A provider that fails or refuses is recorded already, and when it is due again.
    if (signal.aborted || error instanceof ProviderError || error instanceof OAuthError) return;
    const problem = integrationProblem(error);
    if (!(problem instanceof Problem) && (isTransient(error) || isUnavailable(error))) throw error;
    const { organizationId, integrationId } = target;
    if (problem instanceof Problem) log.debug({ organizationId, integrationId, code: problem.code }, 'not refreshed');
    else log.error({ err: error, organizationId, integrationId }, 'tokens were not refreshed');
    await markHealth(integrations, target, { state: 'not_asked' }, { checkSeconds: POSTPONED_S });
  }
}

/**
 * Exchanges the tokens of connections that nobody has used for weeks, disabled ones too: refresh tokens die unused. If the process
 * dies, a connection is still due; one whose provider fails is due again soon, and one whose tokens are refused needs its
 * authorization again.
 */
export const integrationsRefresh: JobHandler<'integrations__refresh'> = (_payload, context) =>
  eachDue(context, 'refresh', (due) => refresh(context, due));
