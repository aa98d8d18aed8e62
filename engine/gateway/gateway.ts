import { z } from 'zod';
import { TOOL_EFFECTS } from '../integration_states.ts';
import type { Integrations } from '../integrations/index.ts';
import type { Storage } from '../storage/index.ts';

/** What the gateway works with. */
export type Gateway = Readonly<{ integrations: Integrations; storage: Storage }>;

/** Who calls, by a capability for one execution and one integration. */
export type GatewayCall = Readonly<{
  organizationId: string;
  tokenHash: string;
  integrationId: string;
  invocationId: string;
}>;

/** What of a call's body counts for the tool. */
export type ToolRequest = Readonly<{
  tool: string;
  arguments: Readonly<Record<string, unknown>>;
  /** Ids of files of the invocation, by argument. */
  files?: Readonly<Record<string, string>> | undefined;
  cursor?: string | undefined;
  timeoutMs: number;
}>;

const shown = {
  execution: z.object({ runId: z.uuid() }),
  integration: z.object({
    provider: z.string(),
    settings: z.record(z.string(), z.unknown()).nullable(),
    connectionRevision: z.int(),
  }),
  tool: z.object({
    key: z.string(),
    effect: z.enum(TOOL_EFFECTS),
    inputSchema: z.record(z.string(), z.unknown()),
    digest: z.string(),
  }),
};

/** What `action_invocation_begin` returns. */
export const begunSchema = z.discriminatedUnion('state', [
  z.object({ ...shown, state: z.literal('write') }),
  z.object({ ...shown, state: z.literal('begun') }),
  z.object({ ...shown, state: z.literal('running'), leaseId: z.uuid() }),
  z.object({
    ...shown,
    state: z.literal('responded'),
    response: z.string().nullable(),
    responseKey: z.string().nullable(),
  }),
]);
export type Begun = z.output<typeof begunSchema>;
