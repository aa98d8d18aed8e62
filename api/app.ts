import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { createThrottle, logThrottled } from '../engine/log.ts';
import { adminEndpoints, explorerEndpoints } from './admin/endpoints.ts';
import type { Endpoint } from './http/endpoint.ts';
import { registerEndpoints } from './http/register.ts';
import { logRequests } from './http/request_log.ts';
import { requestState, trackRequests } from './http/request_state.ts';
import { createResponder } from './http/respond.ts';
import { securityHeaders } from './http/security_headers.ts';
import { agentEndpoints } from './routes/agent/index.ts';
import { agentProfileEndpoints } from './routes/agent_profiles.ts';
import { auditEndpoints } from './routes/audit.ts';
import { chatAttachmentEndpoints } from './routes/chat_attachments.ts';
import { chatEndpoints } from './routes/chats.ts';
import { contextEndpoints } from './routes/context.ts';
import { humanInboxEndpoints } from './routes/human_inbox.ts';
import { messageEndpoints } from './routes/messages.ts';
import { onboardingSourceEndpoints } from './routes/onboarding_sources.ts';
import { onboardingEndpoints } from './routes/onboardings.ts';
import { organizationMemberEndpoints } from './routes/organization_members.ts';
import { organizationEndpoints } from './routes/organizations.ts';
import { runEndpoints } from './routes/runs.ts';
import { scheduleEndpoints } from './routes/schedules.ts';
import { systemEndpoints } from './routes/system.ts';
import { taskEndpoints } from './routes/tasks.ts';
import { workerEndpoints } from './routes/worker/index.ts';
import type { Services } from './services.ts';

/** Every endpoint of the API, by audience and section of the contract. */
export function apiEndpoints(): readonly Endpoint[] {
  return [
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
    ...chatEndpoints(),
    ...messageEndpoints(),
    ...chatAttachmentEndpoints(),
    ...contextEndpoints(),
    ...agentEndpoints(),
    ...workerEndpoints(),
  ];
}

/** The API over its services; `endpoints` are those of the product unless a test brings its own. */
export function createApp(services: Services, endpoints: readonly Endpoint[] = apiEndpoints()): Express {
  const throttle = createThrottle();
  const responder = createResponder({
    validate: services.config.validateResponses,
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

  app.use(trackRequests(services.log));
  app.use(logRequests(services.log, services.metrics));
  app.use(securityHeaders());
  const described = [...endpoints, ...adminEndpoints()];
  registerEndpoints(app, [...described, ...explorerEndpoints(), ...systemEndpoints(described)], services, responder);
  app.use((error: unknown, req: Request, res: Response, _next: NextFunction) => responder.failure(req, res, error));
  return app;
}
