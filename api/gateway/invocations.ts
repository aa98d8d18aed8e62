import { canonicalSha256 } from '../../engine/canonical_json.ts';
import { propose, readOrBegin } from '../../engine/gateway/index.ts';
import { actionExample, actionResult } from '../actions/schema.ts';
import { uuid } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { executionBody } from './changes.ts';
import { executionSchema } from './schema.ts';

export const INVOCATION = '/internal/cli/integrations/{integrationId}/invocations/{invocationId}';
export const invocationParams = {
  integrationId: uuid.describe('That of the capability.'),
  invocationId: uuid.describe('Chosen by the caller: one name is for one body.'),
};

/** What the provider says or does not say, as 4.14 names it. */
const providerErrors = [
  { status: 403, code: 'provider_forbidden', when: 'the provider, or the organization, does not allow it' },
  { status: 502, code: 'provider_failed', when: 'the provider refuses, or responds in another form than it says' },
  { status: 503, code: 'provider_unavailable', when: 'the provider limits us or does not respond; see `Retry-After`' },
] as const;

/** Calls of tools. */
export function invocationEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: `${INVOCATION}/execute`,
      audience: 'gateway',
      tag: 'Gateway',
      operationId: 'executeTool',
      summary: 'Call a tool',
      description:
        'A read responds with what the provider says, a write with the action that it became. The same call again has the same response; with another body it is 409 `differs`.',
      params: invocationParams,
      body: executionBody,
      response: { data: executionSchema },
      external: true,
      errors: [
        {
          status: 400,
          code: 'result_too_large',
          when: 'the result has more than 5 MiB; the issue says how to ask for less',
        },
        { status: 404, code: 'tool_not_found', when: 'the integration has no such tool, or it is not enabled' },
        {
          status: 409,
          code: 'daily_limit_reached',
          when: 'the organization has proposed as many actions as it may today',
        },
        ...providerErrors,
      ],
      example: {
        body: { tool: 'lemon_squeezy.orders.refund', arguments: { orderId: '5512', amount: 4_900 } },
        data: { kind: 'action', action: actionExample },
      },
      async handler({ services, params, body, caller, signal, commit }) {
        const at = { organizationId: caller.organizationId, tokenHash: caller.tokenHash, ...params };
        const bodySha256 = canonicalSha256(body);
        const read = await readOrBegin({ gateway: services, at, request: body, bodySha256, signal });
        if ('response' in read) return executionSchema.parse(read.response);
        const options = { approvalDays: services.config.actionApprovalDays, schema: actionResult };
        const { action } = await commit(() => propose(services, at, { ...read, request: body, bodySha256 }, options));
        return { kind: 'action', action } as const;
      },
    }),
  ];
}
