import type { DeclaredError, Endpoint } from './endpoint.ts';
import { isStream, type StreamResponse } from './endpoint.ts';
import { agentCodes } from './errors.ts';
import type { StreamBody } from './stream_body.ts';

const unauthorized: DeclaredError = {
  status: 401,
  code: 'agent_unauthorized',
  when: 'the token is missing, unknown or expired, or does not permit this call',
};

const agentErrors: readonly DeclaredError[] = [
  unauthorized,
  { status: 404, code: 'not_found', when: 'something that the path or body names does not exist in this organization' },
  { status: 409, code: 'state_conflict', when: 'the current state does not permit the call' },
];

const gatewayErrors: readonly DeclaredError[] = [
  { ...unauthorized, when: 'the capability is missing, unknown or expired, or its execution is over' },
  {
    status: 409,
    code: 'state_conflict',
    when: 'the integration is not available to the execution (any more); `issues[0].code` says why',
  },
];

const workerErrors: readonly DeclaredError[] = [
  unauthorized,
  {
    status: 409,
    code: 'run_lease_expired',
    when: 'the lease does not permit the call; `issues[0].code` is `lease_lost`, `capacity`, `task_not_ready` or `differs`',
  },
];

const adminErrors: readonly DeclaredError[] = [
  { status: 401, code: 'admin_unauthorized', when: 'the bearer token is missing or invalid' },
];

const ownerErrors: readonly DeclaredError[] = [
  { status: 401, code: 'owner_unauthorized', when: 'the bearer token is missing or invalid' },
  {
    status: 403,
    code: 'forbidden',
    when: 'the caller may only read, or a browser sends the request from another site',
  },
];

function ofAudience(endpoint: Endpoint): readonly DeclaredError[] {
  if (endpoint.audience === 'agent') return agentErrors;
  if (endpoint.audience === 'gateway') return gatewayErrors;
  if (endpoint.audience === 'worker') return workerErrors;
  if (endpoint.audience === 'admin') return adminErrors;
  if (endpoint.audience === 'public') return [];
  if (!endpoint.path.includes('{organizationId}')) return ownerErrors;
  const missing = {
    status: 404,
    code: 'organization_not_found',
    when: 'the organization does not exist, or you are not a member of it',
  };
  return [...ownerErrors, missing];
}

/** Bytes for people, in the largest unit that fits. */
export function sizeText(bytes: number): string {
  if (bytes >= 1_073_741_824) return `${bytes / 1_073_741_824} GiB`;
  return bytes < 1_048_576 ? `${bytes / 1024} KiB` : `${bytes / 1_048_576} MiB`;
}

function ofBody(endpoint: Endpoint): readonly DeclaredError[] {
  const stream = isStream<StreamBody>(endpoint.body) ? endpoint.body : undefined;
  const code = stream?.tooLargeCode ?? 'payload_too_large';
  return [
    { status: 408, code: 'request_timeout', when: 'the body did not arrive in time' },
    { status: 413, code, when: `the body is larger than ${stream ? sizeText(stream.maxBytes) : '1 MiB'}` },
    { status: 415, code: 'unsupported_media_type', when: 'the body has another media type' },
  ];
}

function ofResponse(endpoint: Endpoint): readonly DeclaredError[] {
  if (!isStream<StreamResponse>(endpoint.response) || !endpoint.response.ranges) return [];
  return [{ status: 416, code: 'range_not_satisfiable', when: 'the byte range lies outside the file' }];
}

/** True where an `Idempotency-Key` counts. */
export function takesIdempotencyKey(endpoint: Endpoint): boolean {
  if (
    endpoint.method !== 'post' ||
    endpoint.idempotencyKey === 'ignored' ||
    isStream(endpoint.body) ||
    isStream(endpoint.response)
  )
    return false;
  return endpoint.audience === 'owner' || endpoint.audience === 'agent';
}

const always: readonly DeclaredError[] = [
  { status: 400, code: 'validation_failed', when: 'the request is invalid; `issues` names each wrong field' },
  { status: 500, code: 'internal_error', when: 'an unexpected error on the side of the service' },
  {
    status: 503,
    code: 'service_unavailable',
    when: 'the database cannot be reached; retry after the seconds in `Retry-After`',
  },
];
const reused: DeclaredError = {
  status: 409,
  code: 'idempotency_key_reused',
  when: 'the `Idempotency-Key` was used with another body',
};
const tooMany: DeclaredError = {
  status: 429,
  code: 'too_many_requests',
  when: 'the organization has too many costly calls in progress; retry after the seconds in `Retry-After`',
};
const inUse: DeclaredError = {
  status: 409,
  code: 'idempotency_key_in_use',
  when: 'a call with the same `Idempotency-Key` is still in progress after ten seconds; send it again later',
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
    ...ofResponse(endpoint),
    ...(endpoint.costly ? [tooMany] : []),
    ...(takesIdempotencyKey(endpoint) ? [reused, inUse] : []),
  ].map((error) => ({ ...error, code: endpoint.codes?.[error.status] ?? error.code }));
  // What the endpoint itself says about a code is nearer to the point.
  const others = implied.filter((error) => !own.some((one) => one.status === error.status && one.code === error.code));
  return [...own, ...others].sort((a, b) => a.status - b.status);
}

const ofBodies = new Set([408, 413, 415]);

/** Those that the document shows: where no body is taken, what is wrong with one needs no words. */
export function documentedErrors(endpoint: Endpoint): readonly DeclaredError[] {
  const errors = declaredErrors(endpoint);
  return endpoint.body === undefined ? errors.filter((error) => !ofBodies.has(error.status)) : errors;
}
