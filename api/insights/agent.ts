import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { refreshBody, refreshExample, refreshInsights, refreshSchema } from './refresh.ts';

/** Insights, for agents: whatever their tools. */
export function agentInsightEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/agent/organizations/{organizationId}/insights/refresh',
      audience: 'agent',
      tag: 'Agent tools',
      operationId: 'refreshInsightsAsAgent',
      summary: 'Collect sooner',
      description: 'As `refreshInsights`. Runs of every enabled profile may.',
      params: { organizationId },
      body: refreshBody,
      response: { data: refreshSchema },
      example: refreshExample,
      handler: refreshInsights,
    }),
  ];
}
