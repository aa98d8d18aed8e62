import { organizationId } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { notFound, notReady } from '../integrations/owner_errors.ts';
import { refreshBody, refreshExample, refreshInsights, refreshSchema } from './refresh.ts';

/** Insights, for people. */
export function insightEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/insights/refresh',
      audience: 'owner',
      tag: 'Insights',
      operationId: 'refreshInsights',
      summary: 'Collect sooner',
      description: 'Makes what is collected at intervals due now. Nothing is awaited.',
      params: { organizationId },
      body: refreshBody,
      response: { data: refreshSchema },
      errors: [notFound, notReady],
      example: refreshExample,
      handler: refreshInsights,
    }),
  ];
}
