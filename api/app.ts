import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { createThrottle, logThrottled } from '../engine/log.ts';
import { agentActionEndpoints } from './actions/agent.ts';
import { actionEndpoints } from './actions/owner.ts';
import { adminEndpoints, explorerEndpoints } from './admin/endpoints.ts';
import { agentProfileEndpoints } from './agent_profiles/owner.ts';
import { auditEndpoints } from './audit/owner.ts';
import { chatAttachmentEndpoints } from './chat_attachments/owner.ts';
import { chatTurnEndpoints } from './chat_turns/worker.ts';
import { chatEndpoints } from './chats/owner.ts';
import { agentContextEndpoints } from './context/agent.ts';
import { contextEndpoints } from './context/owner.ts';
import { invocationFileEndpoints } from './gateway/files.ts';
import { invocationEndpoints } from './gateway/invocations.ts';
import { uploadEndpoints } from './gateway/uploads.ts';
import { gitEndpoints } from './git/gateway.ts';
import type { Endpoint } from './http/endpoint.ts';
import { registerEndpoints } from './http/register.ts';
import { logRequests } from './http/request_log.ts';
import { requestState, trackRequests } from './http/request_state.ts';
import { createResponder } from './http/respond.ts';
import { securityHeaders } from './http/security_headers.ts';
import { type HttpTiming, TIMING } from './http/timing.ts';
import { agentInboxEndpoints } from './human_inbox/agent.ts';
import { humanInboxEndpoints } from './human_inbox/owner.ts';
import { agentInsightEndpoints } from './insights/agent.ts';
import { insightEndpoints } from './insights/owner.ts';
import { agentIntegrationEndpoints } from './integrations/agent.ts';
import { integrationOAuthEndpoints } from './integrations/oauth.ts';
import { flowFailurePage, flowPageEndpoints } from './integrations/oauth_pages.ts';
import { integrationEndpoints } from './integrations/owner.ts';
import { connectionEndpoints } from './integrations/owner_connection.ts';
import { messageEndpoints } from './messages/owner.ts';
import { agentOnboardingEndpoints } from './onboardings/agent.ts';
import { onboardingEndpoints } from './onboardings/owner.ts';
import { onboardingSourceEndpoints } from './onboardings/owner_sources.ts';
import { organizationMemberEndpoints } from './organization_members/owner.ts';
import { agentOrganizationEndpoints } from './organizations/agent.ts';
import { organizationEndpoints } from './organizations/owner.ts';
import { pullEndpoint } from './run_requests/worker.ts';
import { runEndpoints } from './runs/owner.ts';
import { runLifecycleEndpoints } from './runs/worker.ts';
import { runFileEndpoints } from './runs/worker_files.ts';
import { agentScheduleEndpoints } from './schedules/agent.ts';
import { scheduleEndpoints } from './schedules/owner.ts';
import type { Services } from './services.ts';
import { pageEndpoints } from './system/pages.ts';
import { systemEndpoints } from './system/public.ts';
import { agentOutcomeEndpoints } from './task_outcomes/agent.ts';
import { agentTaskEndpoints } from './tasks/agent.ts';
import { taskEndpoints } from './tasks/owner.ts';

/** People who own or view an organization: OWNER_AUTH decides who they are, membership what they see. */
const ownerEndpoints = (): readonly Endpoint[] => [
  ...onboardingEndpoints(),
  ...onboardingSourceEndpoints(),
  ...organizationEndpoints(),
  ...organizationMemberEndpoints(),
  ...auditEndpoints(),
  ...agentProfileEndpoints(),
  ...taskEndpoints(),
  ...runEndpoints(),
  ...humanInboxEndpoints(),
  ...scheduleEndpoints(),
  ...integrationEndpoints(),
  ...integrationOAuthEndpoints(),
  ...connectionEndpoints(),
  ...actionEndpoints(),
  ...insightEndpoints(),
  ...chatEndpoints(),
  ...messageEndpoints(),
  ...chatAttachmentEndpoints(),
  ...contextEndpoints(),
];

/** Agents: the service token, or the execution capability of one run. */
const agentEndpoints = (): readonly Endpoint[] => [
  ...agentOrganizationEndpoints(),
  ...agentTaskEndpoints(),
  ...agentContextEndpoints(),
  ...agentOnboardingEndpoints(),
  ...agentInboxEndpoints(),
  ...agentOutcomeEndpoints(),
  ...agentScheduleEndpoints(),
  ...agentIntegrationEndpoints(),
  ...agentActionEndpoints(),
  ...agentInsightEndpoints(),
];

/** The gateway: executions, by the capability for one integration. */
const gatewayEndpoints = (): readonly Endpoint[] => [
  ...invocationEndpoints(),
  ...invocationFileEndpoints(),
  ...gitEndpoints(),
];

/** Workers: the service token alone; every call about a run also carries its lease token. */
const workerEndpoints = (): readonly Endpoint[] => [
  pullEndpoint(),
  ...runLifecycleEndpoints(),
  ...runFileEndpoints(),
  ...chatTurnEndpoints(),
];

/** Every endpoint of owners, agents and workers; administrators and the public ones are added below. */
export function apiEndpoints(): readonly Endpoint[] {
  return [...ownerEndpoints(), ...agentEndpoints(), ...gatewayEndpoints(), ...workerEndpoints()];
}

/** The API over its services; `endpoints` and `timing` are those of the product unless a test brings its own. */
export function createApp(
  services: Services,
  endpoints: readonly Endpoint[] = apiEndpoints(),
  timing: HttpTiming = TIMING,
): Express {
  const throttle = createThrottle();
  const responder = createResponder({
    validate: services.config.validateResponses,
    page: flowFailurePage,
    report(error, req, status) {
      const { log } = requestState(req);
      // An outage fails all requests alike; anything else is logged each time, under the id that its client was given.
      if (status === 503) logThrottled(log, throttle, 'a dependency is unavailable', error);
      else log.error({ err: error }, 'a request failed');
    },
  });

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.set('query parser', false);

  app.use(trackRequests(services.log, timing));
  app.use(logRequests(services.log, services.metrics));
  app.use(securityHeaders());
  const described = [...endpoints, ...adminEndpoints()];
  const pages = [...explorerEndpoints(), ...pageEndpoints(), ...flowPageEndpoints(), ...uploadEndpoints()];
  registerEndpoints(app, [...described, ...pages, ...systemEndpoints(described)], services, responder);
  app.use((error: unknown, req: Request, res: Response, _next: NextFunction) => responder.failure(req, res, error));
  return app;
}
