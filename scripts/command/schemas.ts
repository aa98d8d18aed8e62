import { z } from 'zod';

// What the command reads of each response. Whatever else a response holds is kept for --json.

export const organizationSchema = z.looseObject({
  id: z.string(),
  slug: z.string(),
  name: z.string(),
  status: z.string(),
  workDispatchStoppedAt: z.string().nullable(),
});
export type Organization = z.output<typeof organizationSchema>;

const errorSchema = z.looseObject({ code: z.string(), message: z.string() });
const checkSchema = z.looseObject({ status: z.string(), summary: z.string() });
const artifactSchema = z.looseObject({
  runId: z.string(),
  path: z.string(),
  mediaType: z.string(),
  size: z.number(),
});
export type Artifact = z.output<typeof artifactSchema>;

const resultSchema = z.looseObject({
  kind: z.string().optional(),
  summary: z.string().optional(),
  /** Of a run that ended with it: what it asked a person. */
  question: z.string().optional(),
  artifacts: z.array(artifactSchema).optional(),
  completion: z.looseObject({ disposition: z.string(), checks: z.array(checkSchema) }).optional(),
});

/** What a person responded, or what became of an action. */
const answerSchema = z.looseObject({
  purpose: z.string().nullish(),
  title: z.string(),
  question: z.string().nullish(),
  response: z.string().nullable(),
  respondedAt: z.string(),
});
export type Answer = z.output<typeof answerSchema>;

export const taskSchema = z.looseObject({
  id: z.string(),
  identifier: z.string(),
  kind: z.string(),
  title: z.string(),
  status: z.string(),
  agentRunCount: z.int(),
  createdAt: z.string(),
  state: z.looseObject({
    blockers: z.array(
      z.looseObject({ kind: z.string(), inboxItemId: z.string().optional(), actionId: z.string().optional() }),
    ),
    error: errorSchema.optional(),
    answers: z.array(answerSchema).optional(),
  }),
  result: resultSchema.nullable(),
});
export type Task = z.output<typeof taskSchema>;

export const runSchema = z.looseObject({
  id: z.string(),
  mode: z.string(),
  status: z.string(),
  agentProfile: z.looseObject({ key: z.string(), name: z.string() }),
  error: errorSchema.nullable(),
  output: z.looseObject({ result: resultSchema.optional() }).nullable(),
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
});
export type Run = z.output<typeof runSchema>;

export const logEntrySchema = z.looseObject({
  sequence: z.int(),
  status: z.string(),
  label: z.string(),
  detail: z.string(),
  occurredAt: z.string(),
});
export type LogEntry = z.output<typeof logEntrySchema>;
export const logPageSchema = z.looseObject({
  items: z.array(logEntrySchema),
  pagination: z.looseObject({
    oldestSequence: z.int().nullable(),
    newestSequence: z.int().nullable(),
    hasOlder: z.boolean(),
    hasNewer: z.boolean(),
  }),
});

export const explanationSchema = z.looseObject({
  summary: z.string(),
  causes: z.array(z.looseObject({ kind: z.string() })),
});

export const inboxItemSchema = z.looseObject({
  id: z.string(),
  kind: z.string(),
  status: z.string(),
  purpose: z.string(),
  title: z.string(),
  body: z.string(),
  options: z.array(z.string()),
  allowFreeText: z.boolean(),
  taskId: z.string().nullable(),
  actionId: z.string().nullish(),
  createdAt: z.string(),
});
export type InboxItem = z.output<typeof inboxItemSchema>;

export const actionSchema = z.looseObject({
  id: z.string(),
  integrationKey: z.string(),
  provider: z.string(),
  taskId: z.string().nullable(),
  tool: z.string(),
  summary: z.string(),
  risk: z.string(),
  arguments: z.json(),
  argumentsSha256: z.string(),
  files: z.array(
    z.looseObject({
      argument: z.string(),
      name: z.string(),
      contentType: z.string(),
      sizeBytes: z.number(),
      sha256: z.string(),
    }),
  ),
  status: z.string(),
  version: z.int(),
  decision: z.looseObject({ outcome: z.string(), by: z.string(), note: z.string().nullable() }).nullable(),
  execution: z.looseObject({ startedAt: z.string(), result: z.json(), error: errorSchema.nullable() }).nullable(),
  reconciliation: z.looseObject({ outcome: z.string(), by: z.string(), note: z.string() }).nullable(),
  reason: errorSchema.nullable(),
  expiresAt: z.string(),
  createdAt: z.string(),
});
export type Action = z.output<typeof actionSchema>;

/** How an agent's organization stands. */
export const agentStatusSchema = z.looseObject({ organization: z.looseObject({ authorizationEpoch: z.int() }) });

const capabilitySchema = z.looseObject({
  tool: z.string(),
  effect: z.string(),
  risk: z.string(),
  inputSchema: z.looseObject({}),
});
export type Capability = z.output<typeof capabilitySchema>;
export const agentIntegrationSchema = z.looseObject({
  id: z.string(),
  key: z.string(),
  provider: z.string(),
  name: z.string(),
  available: z.boolean(),
  unavailableReason: z.string().nullable(),
  capabilities: z.array(capabilitySchema),
});
export type AgentIntegration = z.output<typeof agentIntegrationSchema>;

const storedFileSchema = z.looseObject({
  fileId: z.string(),
  name: z.string(),
  contentType: z.string(),
  sizeBytes: z.number(),
  sha256: z.string(),
});
export type StoredFile = z.output<typeof storedFileSchema>;
/** What a call of a tool comes to. */
export const executionSchema = z.discriminatedUnion('kind', [
  z.looseObject({
    kind: z.literal('result'),
    data: z.json(),
    nextCursor: z.string().nullable(),
    files: z.array(storedFileSchema),
  }),
  z.looseObject({ kind: z.literal('action'), action: actionSchema }),
]);
export type Execution = z.output<typeof executionSchema>;

export const chatSchema = z.looseObject({ id: z.string(), title: z.string(), status: z.string() });
export type Chat = z.output<typeof chatSchema>;

/** A part of a message: `kind` says which of the others are there. */
export const partSchema = z.looseObject({
  id: z.string(),
  kind: z.string(),
  text: z.string().optional(),
  question: z.string().optional(),
  options: z.array(z.string()).optional(),
  status: z.string().optional(),
  title: z.string().optional(),
  actionId: z.string().optional(),
  summary: z.string().optional(),
});
export type Part = z.output<typeof partSchema>;
export const messageSchema = z.looseObject({
  id: z.string(),
  role: z.string(),
  status: z.string(),
  parts: z.array(partSchema),
  error: errorSchema.nullable(),
});
export type Message = z.output<typeof messageSchema>;
export const postedSchema = z.looseObject({ assistantMessage: messageSchema });
