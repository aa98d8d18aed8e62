import { type RawResponse, rawRequest } from './api_fixtures.ts';
import { SERVICE_TOKEN, type TestApp } from './app.ts';
import type { Operation } from './openapi.ts';
import type { Components, JsonSchema } from './schema_arbitrary.ts';
import type { World } from './worlds.ts';

/** What a name of this kind holds is a path, the name of a file, or a logical URI. */
const PATHLIKE = /(?:path|paths|file|filename|uri)$/i;
export const isUri = (org: string) => /uri$/i.test(org);
const NAMES = new Set([
  'fileName',
  'outcome.result.artifacts.path',
  'outcome.result.artifacts.uri',
  'outcome.evidence.uri',
  'workspaceUri',
]);
/**
 * These name no place: a file may be called anything but slashes, an artifact is looked for among the names of outputs, a URI
 * is compared with the stored one, and where a worker works is for people to read.
 */
export const isName = (org: string) => NAMES.has(org);

/** Where a body has such names, lists left out: `documents.path`. */
function placesIn(schema: JsonSchema, components: Components, at: readonly string[] = []): string[] {
  const { $ref: reference, items, properties = {} } = schema;
  if (at.length > 8) return [];
  if (typeof reference === 'string') {
    return placesIn(components[reference.replace('#/components/schemas/', '')] ?? {}, components, at);
  }
  const parts = ['anyOf', 'oneOf', 'allOf'].flatMap((word) => (schema[word] ?? []) as JsonSchema[]);
  if (items !== undefined) parts.push(items as JsonSchema);
  const named = Object.entries(properties as Record<string, JsonSchema>).flatMap(([name, inner]) => [
    ...(PATHLIKE.test(name) ? [[...at, name].join('.')] : []),
    ...placesIn(inner, components, [...at, name]),
  ]);
  return [...new Set([...parts.flatMap((part) => placesIn(part, components, at)), ...named])];
}

export const placesOfUrl = ({ parameters }: Operation) =>
  parameters.map(({ name }) => name).filter((name) => PATHLIKE.test(name));
export const placesOfBody = ({ body }: Operation, components: Components) =>
  body ? placesIn(body.schema, components) : [];

type Body = (value: string, world: World) => unknown;
const inputs = (path: string) => ({ inputs: [{ kind: 'inline', path, text: 'x' }] });
const ofTask: Body = (value) => ({ title: 'x', ownerProfileKey: 'growth', spec: inputs(value) });
const promotion = (kind: string, document: object, more: object = {}) => ({
  scope: 'organization',
  baseRevision: 1,
  documents: [{ kind, ...document }],
  ...more,
});
const outcome = ({ runId }: World, staged: object) => ({
  runId,
  taskVersion: 2,
  graphRevision: 1,
  idempotencyKey: 'k',
  outcome: staged,
});
const completed = (path: string, claims: object = {}) => ({
  kind: 'completed',
  summary: 's',
  artifacts: [{ path, ...claims }],
});
const lease = ({ organizationId, runLease }: World) => ({ organizationId, leaseToken: runLease });
const profile = { key: 'fresh', name: 'Fresh', kind: 'operator' };
const facts = ({ sourceId }: World) => ({ entries: [{ key: 'k', evidence: [sourceId] }] });

/** A body for each place of each operation that has one. */
export const bodies: Readonly<Record<string, Readonly<Record<string, Body>>>> = {
  createTask: { 'spec.inputs.path': ofTask },
  createTaskAsAgent: { 'spec.inputs.path': ofTask },
  updateTaskAsAgent: { 'spec.inputs.path': (value) => ({ expectedVersion: 1, spec: inputs(value) }) },
  createSchedule: {
    'taskTemplate.spec.inputs.path': (value, world) => ({ cron: '0 9 * * *', taskTemplate: ofTask(value, world) }),
  },
  updateSchedule: {
    'taskTemplate.spec.inputs.path': (value) => ({ expectedVersion: 1, taskTemplate: { spec: inputs(value) } }),
  },
  createScheduleAsAgent: {
    'taskTemplate.spec.inputs.path': (value, world) => ({ cron: '0 9 * * *', taskTemplate: ofTask(value, world) }),
  },
  promoteContext: {
    'documents.path': (value, world) => promotion('facts', { path: value, ...facts(world) }),
    removePaths: (value, world) => promotion('facts', { path: 'b.txt', ...facts(world) }, { removePaths: [value] }),
  },
  promoteContextOfTask: {
    'documents.path': (value) => promotion('notes', { path: value, outputPath: 'document.json' }),
    'documents.outputPath': (value) => promotion('notes', { path: 'b.txt', outputPath: value }),
    removePaths: (value) =>
      promotion('notes', { path: 'b.txt', outputPath: 'document.json' }, { removePaths: [value] }),
  },
  stageTaskOutcome: {
    'outcome.operations.spec.inputs.path': (value, world) =>
      outcome(world, {
        kind: 'plan',
        operations: [{ op: 'create_task', key: 'a', title: 'A', spec: inputs(value) }],
      }),
    'outcome.evidence.path': (value, world) =>
      outcome(world, {
        kind: 'verification',
        verdict: 'passed',
        summary: 's',
        evidence: [{ kind: 'file', runId: world['doneRunId'], path: value }],
      }),
    'outcome.evidence.uri': (value, world) =>
      outcome(world, {
        kind: 'verification',
        verdict: 'passed',
        summary: 's',
        evidence: [{ kind: 'file', runId: world['doneRunId'], path: 'a.txt', uri: value }],
      }),
    'outcome.result.artifacts.path': (value, world) => outcome(world, { kind: 'execution', result: completed(value) }),
    'outcome.result.artifacts.uri': (value, world) =>
      outcome(world, { kind: 'execution', result: completed('a.txt', { uri: value }) }),
  },
  completeRun: {
    'output.result.artifacts.path': (value, world) => ({
      ...lease(world),
      output: { kind: 'task_result', result: completed(value) },
    }),
    'output.result.artifacts.uri': (value, world) => ({
      ...lease(world),
      output: { kind: 'task_result', result: completed('a.txt', { uri: value }) },
    }),
    workspaceUri: (value, world) => ({
      ...lease(world),
      workspaceUri: value,
      output: { kind: 'task_result', result: completed('a.txt') },
    }),
  },
  markRunRunning: { workspaceUri: (value, world) => ({ ...lease(world), workspaceUri: value }) },
  createOrganization: {
    rootUri: (value) => ({ slug: 'fresh', name: 'Fresh', rootUri: value }),
    'config.storageRootUri': (value) => ({ slug: 'fresh-too', name: 'Fresh', config: { storageRootUri: value } }),
  },
  updateOrganization: {
    rootUri: (value) => ({ rootUri: value }),
    'config.storageRootUri': (value) => ({ config: { storageRootUri: value } }),
  },
  createAgentProfile: {
    rootUri: (value) => ({ ...profile, rootUri: value }),
    instructionsUri: (value) => ({ ...profile, instructionsUri: value }),
    'config.memoryRootUri': (value) => ({ ...profile, config: { memoryRootUri: value } }),
  },
  updateAgentProfile: {
    rootUri: (value) => ({ rootUri: value }),
    instructionsUri: (value) => ({ instructionsUri: value }),
    'config.memoryRootUri': (value) => ({ config: { memoryRootUri: value } }),
  },
};

/** What the parameters hold that are not tried. */
function parameterOf(name: string, { operationId, path, method }: Operation, world: World): string | undefined {
  const ofUpload = method === 'PUT';
  const values: Record<string, string | undefined> = {
    ...world,
    ...(operationId === 'createOrganization' ? { organizationId: world['freshId'] } : {}),
    taskRef: world[{ stageTaskOutcome: 'runningId', promoteContextOfTask: 'doneId' }[operationId] ?? 'readyId'],
    id: world[path.includes('/agent-profiles') ? 'profileId' : path.includes('/artifacts/') ? 'doneRunId' : 'runId'],
    runId: world[path.includes('/attachments/') ? 'turnRunId' : 'runId'],
    scheduleRef: world['scheduleKey'],
    attachmentId: world[ofUpload ? 'freshId' : 'attachmentId'],
    sourceId: world[ofUpload ? 'freshId' : 'sourceId'],
    // One that has no file yet.
    invocationId: world['freshId'],
    fileId: world['freshId'],
    artifactIndex: '0',
    path: 'a.txt',
    fileName: 'a.txt',
    mediaType: 'text/plain',
    kind: 'file',
    'X-Organization-Id': world['organizationId'],
    'X-Lease-Token': world[path.includes('/attachments/') ? 'turnLease' : 'runLease'],
  };
  return values[name];
}

/** The ways to write a value into a URL. */
export const encodings: readonly ((value: string) => string)[] = [
  encodeURIComponent,
  (value) => value.replace(/[^!-~]|[%?#&]/gu, encodeURIComponent),
  (value) => encodeURIComponent(value).replaceAll('.', '%2e'),
  (value) => encodeURIComponent(encodeURIComponent(value).replaceAll('.', '%2e')),
];

type Tried = Readonly<{ org: string; value: string; encode?: (value: string) => string }>;

/** A request with what the world has, and the value at the place that is tried. */
export async function sendPath(
  app: TestApp,
  operation: Operation,
  world: World,
  tried?: Tried,
  ownerToken?: string,
): Promise<RawResponse> {
  const { method, operationId, parameters, body } = operation;
  const given = (name: string) =>
    name === tried?.org
      ? (tried.encode ?? encodeURIComponent)(tried.value)
      : encodeURIComponent(parameterOf(name, operation, world) ?? '');
  const required = parameters.filter((parameter) => parameter.required);
  const query = required.filter((parameter) => parameter.in === 'query').map(({ name }) => `${name}=${given(name)}`);
  const headers = required.filter((parameter) => parameter.in === 'header');
  const gateway = operation.path.startsWith('/internal/cli/') ? world['gatewayCapability'] : undefined;
  const build = bodies[operationId]?.[tried?.org ?? ''];
  return rawRequest(app.url, {
    method,
    path: `${operation.path.replace(/\{(\w+)\}/g, (_whole, name) => given(name))}?${query.join('&')}`,
    headers: {
      ...(operation.path.startsWith('/internal/') ? { authorization: `Bearer ${gateway ?? SERVICE_TOKEN}` } : {}),
      ...(ownerToken === undefined ? {} : { authorization: `Bearer ${ownerToken}` }),
      ...(body ? { 'content-type': body.mediaType } : {}),
      ...Object.fromEntries(headers.map(({ name }) => [name, parameterOf(name, operation, world) ?? ''])),
    },
    ...(build ? { body: JSON.stringify(build(tried?.value ?? '', world)) } : body ? { body: 'abc' } : {}),
  });
}

/** A value as the place wants it: a URI is one of the organization, with the value as its path. */
export function writtenAt(org: string, value: string, world: World, { operationId }: Operation): string {
  const organizationId = world[operationId === 'createOrganization' ? 'freshId' : 'organizationId'];
  return isUri(org) ? `org://${organizationId}/${value}` : value;
}

/** A value that the place takes. */
export const goodAt = (org: string, world: World) =>
  ({
    file: 'start.js',
    'documents.outputPath': 'document.json',
    'outcome.evidence.uri': `runs/${world['doneRunId']}/outputs/a.txt`,
    'output.result.artifacts.uri': `runs/${world['runId']}/outputs/a.txt`,
  })[org] ?? 'a.txt';
