import type { Endpoint } from '../../http/endpoint.ts';
import { agentContextEndpoints } from './context.ts';
import { agentInboxEndpoints } from './human_inbox.ts';
import { agentOnboardingEndpoints } from './onboarding.ts';
import { agentOrganizationEndpoints } from './organization.ts';
import { agentOutcomeEndpoints } from './outcomes.ts';
import { agentScheduleEndpoints } from './schedules.ts';
import { agentTaskEndpoints } from './tasks.ts';

/** Contract 4.12: the service token or an execution capability opens them. */
export function agentEndpoints(): readonly Endpoint[] {
  return [
    ...agentOrganizationEndpoints(),
    ...agentTaskEndpoints(),
    ...agentContextEndpoints(),
    ...agentOnboardingEndpoints(),
    ...agentInboxEndpoints(),
    ...agentOutcomeEndpoints(),
    ...agentScheduleEndpoints(),
  ];
}
