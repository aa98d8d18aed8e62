import type { DeclaredError, Endpoint } from './endpoint.ts';
import { isStream, type StreamAnswer } from './endpoint.ts';
import { agentCodes } from './errors.ts';
import type { StreamBody } from './stream_body.ts';

const agentErrors: readonly DeclaredError[] = [
  { status: 401, code: 'agent_unauthorized', when: 'the token is missing, unknown, over, or not allowed to do this' },
  { status: 404, code: 'not_found', when: 'what the path or body names does not exist in this organization' },
  { status: 409, code: 'state_conflict', when: 'the state does not permit it' },
];

const workerErrors: readonly DeclaredError[] = [
  { status: 401, code: 'agent_unauthorized', when: 'the service token is missing or unknown' },
  {
    status: 409,
    code: 'run_lease_expired',
    when: 'the lease does not hold; `issues[0].code` says which: `lease_lost`, `capacity`, `task_not_ready`, `differs`',
  },
];

const adminErrors: readonly DeclaredError[] = [
  { status: 401, code: 'admin_unauthorized', when: 'the bearer token is missing or not valid' },
];

const ownerErrors: readonly DeclaredError[] = [
  { status: 401, code: 'owner_unauthorized', when: 'the bearer token is missing or not valid' },
  { status: 403, code: 'forbidden', when: 'a viewer writes, or a browser of another site sends the request' },
];

function ofAudience(endpoint: Endpoint): readonly DeclaredError[] {
  if (endpoint.audience === 'agent') return agentErrors;
  if (endpoint.audience === 'worker') return workerErrors;
  if (endpoint.audience === 'admin') return adminErrors;
  if (endpoint.audience === 'public') return [];
  if (!endpoint.path.includes('{organizationId}')) return ownerErrors;
  const missing = {
    status: 404,
    code: 'organization_not_found',
    when: 'the organization does not exist, or not for you',
  };
  return [...ownerErrors, missing];
}

function ofBody(endpoint: Endpoint): readonly DeclaredError[] {
  const stream = isStream<StreamBody>(endpoint.body) ? endpoint.body : undefined;
  const code = stream?.tooLargeCode ?? 'payload_too_large';
  return [
    { status: 408, code: 'request_timeout', when: 'the body does not arrive in time' },
    { status: 413, code, when: stream ? `the body is over ${stream.maxBytes} bytes` : 'the body is over 1 MiB' },
    { status: 415, code: 'unsupported_media_type', when: 'the body is of another media type' },
  ];
}

function ofAnswer(endpoint: Endpoint): readonly DeclaredError[] {
  if (!isStream<StreamAnswer>(endpoint.response) || !endpoint.response.ranges) return [];
  return [{ status: 416, code: 'range_not_satisfiable', when: 'the byte range cannot be served' }];
}

/** True where an `Idempotency-Key` counts (design/decisions.md 1). */
export function takesIdempotencyKey(endpoint: Endpoint): boolean {
  if (endpoint.method !== 'post' || isStream(endpoint.body) || isStream(endpoint.response)) return false;
  return endpoint.audience === 'owner' || endpoint.audience === 'agent';
}

const always: readonly DeclaredError[] = [
  { status: 400, code: 'validation_failed', when: 'the request is not valid; `issues` say where' },
  { status: 500, code: 'internal_error', when: 'something went wrong on our side' },
  { status: 503, code: 'service_unavailable', when: 'the database cannot be reached; see Retry-After' },
];
const reused: DeclaredError = {
  status: 409,
  code: 'idempotency_key_reused',
  when: 'the Idempotency-Key came with another body before',
};

/** Codes of 4.12 are fixed by their status, whatever a transition says. */
function asAudienceSees(endpoint: Endpoint, error: DeclaredError): DeclaredError {
  const code = endpoint.audience === 'agent' ? (agentCodes[error.status] ?? error.code) : error.code;
  return { ...error, code };
}

/** All refusals of an endpoint: its own, and those that follow from its audience and shape. */
export function declaredErrors(endpoint: Endpoint): readonly DeclaredError[] {
  const own = (endpoint.errors ?? []).map((error) => asAudienceSees(endpoint, error));
  const implied = [
    ...always,
    ...ofAudience(endpoint),
    ...ofBody(endpoint),
    ...ofAnswer(endpoint),
    ...(takesIdempotencyKey(endpoint) ? [reused] : []),
  ].map((error) => ({ ...error, code: endpoint.codes?.[error.status] ?? error.code }));
  // What the endpoint itself says about a code is nearer to the point.
  const others = implied.filter((error) => !own.some((one) => one.status === error.status && one.code === error.code));
  return [...own, ...others].sort((a, b) => a.status - b.status);
}

const ofBodies = new Set([408, 413, 415]);

/** Those that the document shows: nobody sends a body with GET, though one would be refused as any other. */
export function documentedErrors(endpoint: Endpoint): readonly DeclaredError[] {
  const errors = declaredErrors(endpoint);
  return endpoint.method === 'get' ? errors.filter((error) => !ofBodies.has(error.status)) : errors;
}
