import {
  findPostgresError,
  isTransient,
  isUnavailable,
  isUntranslatable,
  raisedProblem,
} from '../../engine/db/errors.ts';
import { type Issue, Problem } from '../../engine/db/problem.ts';
import { StorageFullError, StorageUnavailableError } from '../../engine/storage/index.ts';
import type { Audience } from './caller.ts';

const RETRY_AFTER_SECONDS = '2';
/** SQLSTATE disk_full. */
const DISK_FULL = '53100';

/** 400 with its issues. */
export function validationFailed(issues: readonly Issue[], message = 'The request is not valid.'): Problem {
  return new Problem(400, 'validation_failed', message, issues);
}

/** 400 with one issue. */
export function invalid(path: string, message: string, code = 'invalid_value'): Problem {
  return validationFailed([{ path, message, code }]);
}

export function serviceUnavailable(message = 'The service cannot reach its database. Try again.'): Problem {
  return new Problem(503, 'service_unavailable', message, undefined, { 'Retry-After': RETRY_AFTER_SECONDS });
}

/** Something else than the database that a request needs cannot be reached; the message is for the client, the cause for the log. */
export class UnavailableError extends Error {
  override name = 'UnavailableError';
}

const internalError = () =>
  new Problem(500, 'internal_error', 'Something went wrong on our side. The request id names it in our logs.');

/** Errors of Express itself, such as a path that cannot be decoded, carry a status below 500. */
function expressProblem(error: unknown): Problem | undefined {
  if (error instanceof URIError) return invalid('path', 'is not valid percent-encoding', 'invalid_encoding');
  if (!(error instanceof Error) || !('status' in error) || typeof error.status !== 'number') return undefined;
  return error.status === 400 ? invalid('path', 'is not valid percent-encoding', 'invalid_encoding') : undefined;
}

/** The refusal that an error stands for; `unforeseen` asks for the error itself in the log. */
export function toProblem(error: unknown): { problem: Problem; unforeseen: boolean } {
  if (error instanceof Problem) return { problem: error, unforeseen: error.status >= 500 && error.status !== 503 };
  const postgres = findPostgresError(error);
  const raised = postgres && raisedProblem(postgres);
  if (raised) return { problem: raised, unforeseen: false };
  if (error instanceof UnavailableError) return { problem: serviceUnavailable(error.message), unforeseen: true };
  // What it says names hosts and buckets: for the log alone.
  if (error instanceof StorageFullError) {
    return {
      problem: serviceUnavailable('The service has no room for more files. Try again later.'),
      unforeseen: true,
    };
  }
  if (error instanceof StorageUnavailableError) {
    return { problem: serviceUnavailable('The service cannot reach its files. Try again.'), unforeseen: true };
  }
  if (postgres?.code === DISK_FULL) {
    const problem = serviceUnavailable('The database of the service has no room for more. Try again later.');
    return { problem, unforeseen: true };
  }
  if (isUnavailable(error)) return { problem: serviceUnavailable(), unforeseen: true };
  if (isUntranslatable(error)) {
    return { problem: invalid('', 'holds a character that cannot be stored', 'invalid_text'), unforeseen: false };
  }
  const express = expressProblem(error);
  if (express) return { problem: express, unforeseen: false };
  return { problem: internalError(), unforeseen: true };
}

/** The one conflict of workers is refined by the first issue (docs/interface.md 4.13); other names are translated. */
const leaseReasons: Readonly<Record<string, string>> = {
  lease_lost: 'lease_lost',
  capacity: 'capacity',
  task_not_ready: 'task_not_ready',
  differs: 'differs',
  state_conflict: 'task_not_ready',
};

function forWorkers(problem: Problem): Problem {
  if (problem.status !== 404 && problem.status !== 409) return problem;
  const given = problem.issues?.[0];
  const code = leaseReasons[given?.code ?? ''] ?? leaseReasons[problem.code] ?? 'lease_lost';
  const issues = [{ path: given?.path ?? '', message: given?.message ?? problem.message, code }];
  return new Problem(409, 'run_lease_expired', problem.message, [...issues, ...(problem.issues?.slice(1) ?? [])]);
}

/** What 4.12 calls refusals of a status. */
export const agentCodes: Readonly<Partial<Record<number, string>>> = {
  400: 'validation_failed',
  401: 'agent_unauthorized',
  404: 'not_found',
  409: 'state_conflict',
};

/** What 4.14 adds to them. */
const gatewayCodes: ReadonlySet<string> = new Set([
  'tool_not_found',
  'result_too_large',
  'daily_limit_reached',
  'provider_forbidden',
]);

/** As agents see them, with the codes of their own. */
function forGateway(problem: Problem): Problem {
  return gatewayCodes.has(problem.code) ? problem : forAgents(problem);
}

function forAgents(problem: Problem): Problem {
  // What a capability may not do is 401; agents get no 403 (docs/interface.md 5.4).
  const status = problem.status === 403 ? 401 : problem.status;
  const code = problem.code.startsWith('idempotency_key_') ? problem.code : (agentCodes[status] ?? problem.code);
  return new Problem(status, code, problem.message, problem.issues, problem.headers);
}

/** The code follows the audience and, where it names another, the endpoint (`codes`; docs/interface.md 7.1). */
export function forAudience(
  problem: Problem,
  audience: Audience,
  codes: Readonly<Partial<Record<number, string>>> = {},
): Problem {
  let mapped = problem;
  if (audience === 'agent') mapped = forAgents(problem);
  if (audience === 'gateway') mapped = forGateway(problem);
  if (audience === 'worker') mapped = forWorkers(problem);
  const code = codes[mapped.status];
  if (code && code !== mapped.code) {
    mapped = new Problem(mapped.status, code, mapped.message, mapped.issues, mapped.headers);
  }
  if (mapped.status !== 401 || mapped.headers?.['WWW-Authenticate']) return mapped;
  return new Problem(401, mapped.code, mapped.message, mapped.issues, {
    ...mapped.headers,
    'WWW-Authenticate': 'Bearer realm="business-runner"',
  });
}

const RETRIES = 4;
const RETRY_BASE_MS = 15;

/**
 * Runs a unit of work again when Postgres gave it up for a lock (lock time-out, deadlock, serialization): nothing was
 * changed then. The only place that repeats; the wait is jittered so that two rivals do not meet again.
 */
export async function retryTransient<T>(work: () => Promise<T>, given?: () => AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      // A lock time-out has waited long already: once more, then the caller gets the error.
      const last = findPostgresError(error)?.code === '55P03' ? 2 : RETRIES;
      if (!isTransient(error) || attempt >= last || given?.().aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_BASE_MS * 2 ** attempt * (0.5 + Math.random())));
    }
  }
}
