import { digests, ids, valuesByName } from '../http/openapi/example_values.ts';

const lease = { organizationId: ids.organization, leaseToken: valuesByName['leaseToken'] };
const usage = { inputTokens: 18_240, outputTokens: 2_115, toolCalls: 14, costMinorUnits: 42 };

/** Bodies of workers' calls, for the OpenAPI document. */
export const completeExample = {
  ...lease,
  output: {
    kind: 'task_result',
    result: {
      kind: 'completed',
      summary: 'The report covers four regions and 800 orders.',
      artifacts: [{ path: 'report.json', mediaType: 'application/json', size: 2_481, sha256: digests.report }],
    },
  },
  usage,
  receipts: [{ kind: 'command', id: 'command-1', commandHash: digests.command, status: 'completed', exitCode: 0 }],
  logState: 'complete',
};

export const failExample = {
  ...lease,
  error: { code: 'model_unavailable', message: 'The model did not respond within 60 seconds.', retryable: true },
  usage,
  logState: 'complete',
};

export const logsExample = {
  ...lease,
  entries: [
    {
      sequence: 1,
      category: 'execution',
      status: 'completed',
      label: 'Count the orders by region',
      detail: 'sales.csv, 800 orders',
      occurredAt: '2026-11-27T09:14:27.580Z',
    },
  ],
};
