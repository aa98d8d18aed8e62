import type { DeclaredError, Endpoint } from './endpoint.ts';
import { isStream, type StreamBody } from './endpoint.ts';

const agentErrors: readonly DeclaredError[] = [
  { status: 401, code: 'agent_unauthorized', when: 'the token is missing, unknown, over, or not allowed to do this' },
  { status: 404, code: 'not_found', when: 'what the path or body names does not exist in this organization' },
  { status: 409, code: 'state_conflict', when: 'the state does not permit it' },
];

const workerErrors: readonly DeclaredError[] = [
  { status: 401, code: 'agent_unauthorized', when: 'the service token is missing or unknown' },
];

const ownerErrors: readonly DeclaredError[] = [
  { status: 401, code: 'owner_unauthorized', when: 'the bearer token is missing or not valid' },
  { status: 403, code: 'forbidden', when: 'a viewer writes, or a browser of another site sends the request' },
];

function ofAudience(endpoint: Endpoint): readonly DeclaredError[] {
  if (endpoint.audience === 'agent') return agentErrors;
  if (endpoint.audience === 'worker') return workerErrors;
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

/** True where an `Idempotency-Key` counts (design/decisions.md 1). */
export function takesIdempotencyKey(endpoint: Endpoint): boolean {
  if (endpoint.method !== 'post' || isStream(endpoint.body) || isStream(endpoint.response)) return false;
  return endpoint.audience === 'owner' || endpoint.audience === 'agent';
}

/** All refusals of an endpoint: its own, and those that follow from its audience and shape. */
export function declaredErrors(endpoint: Endpoint): readonly DeclaredError[] {
  const reused = {
    status: 409,
    code: 'idempotency_key_reused',
    when: 'the Idempotency-Key came with another body before',
  };
  const all: DeclaredError[] = [
    { status: 400, code: 'validation_failed', when: 'the request is not valid; `issues` say where' },
    ...ofAudience(endpoint),
    ...ofBody(endpoint),
    ...(endpoint.errors ?? []),
    ...(takesIdempotencyKey(endpoint) ? [reused] : []),
    { status: 500, code: 'internal_error', when: 'something went wrong on our side' },
    { status: 503, code: 'service_unavailable', when: 'the database cannot be reached; see Retry-After' },
  ];
  const seen = new Set<string>();
  return all
    .map((error) => {
      const own = endpoint.errors?.some((one) => one.status === error.status && one.code === error.code);
      const code = endpoint.codes?.[error.status];
      return code && !own ? { ...error, code } : error;
    })
    .filter((error) => {
      const key = `${error.status} ${error.code} ${endpoint.errors?.includes(error) ? error.when : ''}`;
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    })
    .sort((a, b) => a.status - b.status);
}
