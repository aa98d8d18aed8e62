import { findPostgresError, raisedProblem } from '../db/errors.ts';
import { type Issue, Problem } from '../db/problem.ts';
import { OAuthError } from '../providers/oauth/index.ts';
import { ProviderError, type ProviderReason } from '../providers/outgoing/index.ts';
import { ToolChangedError } from '../providers/tool.ts';
import { SecretError } from '../secrets/index.ts';

/**
 * What a caller just gave that the provider was asked with: a credential, settings, the arguments of a tool, or nothing (the stored
 * connection). A refusal is the fault of what was given.
 */
export type Given = 'credential' | 'settings' | 'arguments' | 'nothing';

/** Where nobody says when to try again. */
const RETRY_AFTER_S = 30;

const seconds = (until: Date | undefined) =>
  until === undefined ? RETRY_AFTER_S : Math.max(1, Math.ceil((until.getTime() - Date.now()) / 1_000));

/** 409 with what is missing: a step (`connection`), a setting of the integration or one of the deployment. */
export function notReady(path: string, code: string, message: string): Problem {
  return new Problem(409, 'integration_not_ready', 'The integration is not ready for this.', [{ path, code, message }]);
}

/** The connection has to be authorized again, or to get its credential again. */
export function needsReauthorization(): Problem {
  return notReady('connection', 'needs_reauthorization', 'connect or authorize the integration again');
}

export function asksForReauthorization(error: unknown): boolean {
  return error instanceof Problem && error.issues?.[0]?.code === 'needs_reauthorization';
}

/** Status and code of the provider, which are no texts of it. */
function suffix({ status, code }: ProviderError): string {
  const facts = [
    ...(status === undefined ? [] : [`status ${status}`]),
    ...(code === undefined ? [] : [`code ${code}`]),
  ];
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`;
}

function unavailable(message: string, until: Date | undefined, issues: readonly Issue[]): Problem {
  return new Problem(503, 'provider_unavailable', message, issues, { 'Retry-After': String(seconds(until)) });
}

/** What is longer than a response may be is not cut: the caller asks for less. */
export function tooLarge(limit = '5 MiB'): Problem {
  return tooMuch(`asks for more than ${limit}: ask for fewer fields, a smaller page or a shorter time`);
}

/** @param message how to ask for less */
export function tooMuch(message: string): Problem {
  return new Problem(400, 'result_too_large', 'The result is too large.', [
    { path: 'arguments', code: 'result_too_large', message },
  ]);
}

/** Not the fault of the arguments of a call, whatever they are. */
const OF_CONNECTION: ReadonlySet<ProviderReason> = new Set([
  'rejected',
  'blocked',
  'refused',
  'rate_limited',
  'unavailable',
]);

function placeOf({ reason }: ProviderError, given: Given): string {
  return given === 'nothing' || (given === 'arguments' && OF_CONNECTION.has(reason)) ? 'connection' : given;
}

function ofProvider(error: ProviderError, given: Given, path = placeOf(error, given)): Problem {
  const message = `${error.message}${suffix(error)}`;
  // Of OAuth itself, and something to do about it: authorize again, and more.
  const code = error.code === 'insufficient_scope' ? error.code : error.reason;
  const issues = [{ path, code, message }];
  switch (error.reason) {
    case 'rate_limited':
    case 'unavailable':
      return unavailable(message, error.retryNotBefore, issues);
    case 'blocked':
      return given === 'settings'
        ? new Problem(400, 'settings_invalid', message, issues)
        : new Problem(403, 'provider_forbidden', message, issues);
    case 'too_large':
      return given === 'arguments' ? tooLarge() : new Problem(502, 'provider_failed', message, issues);
    case 'rejected':
    case 'forbidden':
      if (given === 'arguments' && error.reason === 'forbidden') {
        return new Problem(403, 'provider_forbidden', message, issues);
      }
      if (given === 'credential') return new Problem(400, 'credential_rejected', message, issues);
      return error.reason === 'rejected'
        ? needsReauthorization()
        : new Problem(502, 'provider_failed', message, issues);
    case 'refused':
    case 'not_found':
      if (given === 'credential') return new Problem(400, 'credential_rejected', message, issues);
      if (given === 'settings') return new Problem(400, 'settings_invalid', message, issues);
      if (given === 'arguments' && error.reason === 'not_found') return new Problem(404, 'not_found', message, issues);
      return new Problem(502, 'provider_failed', message, issues);
    default:
      return new Problem(502, 'provider_failed', message, issues);
  }
}

function ofOAuth(error: OAuthError): Problem {
  if (error.reason === 'client_refused') return notReady('deployment', 'client_refused', error.message);
  if (error.reason === 'invalid_grant') return needsReauthorization();
  return new Problem(502, 'provider_failed', error.message, [
    { path: 'connection', code: error.code ?? error.reason, message: error.message },
  ]);
}

/** The one mapping of what goes wrong with a provider to the codes of the contract. Anything else stays as it is. */
export function integrationProblem(error: unknown, given: Given = 'nothing', path?: string): unknown {
  if (error instanceof ToolChangedError) {
    return new Problem(409, 'state_conflict', 'The tool is not available to this execution', [
      { path: 'tool', code: 'tool_changed', message: 'its server has changed it, so that it is off' },
    ]);
  }
  if (error instanceof ProviderError) return ofProvider(error, given, path);
  if (error instanceof OAuthError) return ofOAuth(error);
  if (error instanceof SecretError) {
    return error.reason === 'no_keys'
      ? notReady('ENCRYPTION_KEYS', 'deployment_setting', 'is not set, so that no credential can be kept')
      : needsReauthorization();
  }
  const postgres = findPostgresError(error);
  return (postgres && raisedProblem(postgres)) ?? error;
}

/** The same of a promise. */
export async function withProblems<T>(run: () => Promise<T>, given: Given = 'nothing', path?: string): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw integrationProblem(error, given, path);
  }
}
