import type { z } from 'zod';
import { canonicalSha256 } from '../canonical_json.ts';
import { call } from '../db/call.ts';
import { withoutSecrets } from '../secret_values.ts';
import { storableText } from '../storable.ts';
import { fileArguments } from './file_arguments.ts';
import type { Begun, Gateway, GatewayCall, ToolRequest } from './gateway.ts';
import { argumentsOf, runtimeOf } from './tools.ts';

const MAX_SUMMARY = 2_000;

export type ProposalRequest = ToolRequest & Readonly<{ repeat?: boolean | undefined; retryOf?: string | undefined }>;

/** Characters that move or hide others: a person decides by this text. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** One line, as long as people read. */
function summaryText(text: string): string {
  const line = storableText(text).replace(UNSEEN, ' ').replace(/ {2,}/g, ' ').trim();
  return line.length <= MAX_SUMMARY ? line || '(empty)' : `${line.slice(0, MAX_SUMMARY - 1).toWellFormed()}…`;
}

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
    summary: summaryText(runtime.summary({ args: seen, settings, files: shown })),
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
