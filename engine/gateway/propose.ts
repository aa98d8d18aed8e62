import type { z } from 'zod';
import { canonicalSha256 } from '../canonical_json.ts';
import { call } from '../db/call.ts';
import { oneLine } from '../one_line.ts';
import { withoutSecrets } from '../secret_values.ts';
import { fileArguments } from './file_arguments.ts';
import type { Begun, Gateway, GatewayCall, ToolRequest } from './gateway.ts';
import { argumentsOf, runtimeOf } from './tools.ts';

const MAX_SUMMARY = 2_000;

export type ProposalRequest = ToolRequest & Readonly<{ repeat?: boolean | undefined; retryOf?: string | undefined }>;

/**
 * Proposes a write: the action, which was there before where an equal one is open or was done. `schema` reads the transition's result.
 * @throws Problem 400, 401, 404, 409
 */
export async function propose<S extends z.ZodType>(
  gateway: Gateway,
  at: GatewayCall,
  { begun, request, bodySha256 }: Readonly<{ begun: Begun; request: ProposalRequest; bodySha256: string }>,
  { approvalDays, schema }: Readonly<{ approvalDays: number; schema: S }>,
): Promise<z.output<S>> {
  const runtime = runtimeOf(begun);
  if (runtime.effect !== 'write') throw new TypeError(`${begun.tool.key} is no write`);
  const args = argumentsOf(runtime, request.arguments, begun);
  const files = await fileArguments(gateway, at, runtime, request);
  const { settings } = begun.integration;
  // The inbox, the audit log and receipts repeat the summary.
  const seen = withoutSecrets(args as typeof request.arguments, begun.tool.inputSchema);
  const shown = Object.fromEntries(
    files.map(({ argument, name, contentType, sizeBytes }) => [argument, { name, contentType, sizeBytes }]),
  );
  const { invocationId, ...place } = at;
  const proposal = {
    invocationId,
    bodySha256,
    tool: begun.tool.key,
    summary: oneLine(runtime.summary({ args: seen, settings, files: shown }), MAX_SUMMARY) || '(empty)',
    risk: runtime.riskOf?.(args, settings),
    arguments: request.arguments,
    argumentsSha256: canonicalSha256(request.arguments),
    files,
    repeat: request.repeat,
    retryOf: request.retryOf,
    timeoutMs: request.timeoutMs,
  };
  const db = gateway.integrations.db.of(at.organizationId);
  return call(db, 'action_propose', { ...place, kind: 'cli', proposal, approvalDays }, schema);
}
