import { canonicalSha256 } from '../../engine/canonical_json.ts';
import { propose, readOrBegin } from '../../engine/gateway/index.ts';
import { actionExample, actionResult } from '../actions/schema.ts';
import { uuid } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ofProvider } from '../integrations/owner_errors.ts';
import { executionBody } from './changes.ts';
import { executionSchema } from './schema.ts';

export const INVOCATION = '/internal/cli/integrations/{integrationId}/invocations/{invocationId}';
export const invocationParams = {
  integrationId: uuid.describe('That of the capability.'),
  invocationId: uuid.describe('Chosen by the caller: one name is for one body.'),
};

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
          when: 'the result has more than 5 MiB',
        },
        { status: 404, code: 'not_found', when: 'the provider knows no such thing' },
        { status: 404, code: 'tool_not_found', when: 'the integration has no such tool, or it is not enabled' },
        {
          status: 409,
          code: 'daily_limit_reached',
          when: 'no more actions today',
        },
        ...ofProvider,
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
