import { Problem } from '../db/problem.ts';
import type { OpenConnection } from '../integrations/index.ts';
import { accountBucket, type GitRemote } from '../providers/index.ts';
import { ProviderError } from '../providers/outgoing/index.ts';
import { type GitCall, GitFailedError, gitText } from './program.ts';

/** A repository of a connection, as the real git reaches it. */
export type Remote = GitRemote &
  Readonly<{
    connection: OpenConnection;
    /** Where git goes: the provider's own address, or what stands in for it in a test. */
    address: string;
  }>;

const NAME = /^[A-Za-z0-9_.-]{1,100}$/;

/**
 * A repository that the settings of the integration name.
 * @throws Problem 404 for any other one, ProviderError where the organization blocks the provider's domain
 */
export function remoteOf(connection: OpenConnection, owner: string, repository: string): Remote {
  const { provider, access, context } = connection;
  const isName = NAME.test(repository) && repository !== '.' && repository !== '..';
  const remote = isName ? provider.git?.remote(access, owner, repository) : undefined;
  if (!remote) throw new Problem(404, 'not_found', 'The integration has no such repository.');
  context.client.secureUrl(provider.key, remote.url);
  return { ...remote, connection, address: context.client.browserUrl(new URL(remote.url)).href };
}

/** The calls of git that its provider allows an account at once, and each second. */
export function bucketsOf({ connection }: Remote) {
  return [accountBucket(`${connection.provider.key}:git`, connection.context, 60, 4)];
}

/** What git wrote, as a failure of the provider. Its texts are not handed on: they may hold what a server said. */
export function failureOf(provider: string, { stderr }: GitFailedError): ProviderError {
  if (/Authentication failed|could not read (?:Username|Password)|HTTP 401|error: 401/i.test(stderr)) {
    return new ProviderError(provider, 'rejected', 'The provider does not accept the credential.', { status: 401 });
  }
  if (/error: 403/.test(stderr)) {
    return new ProviderError(provider, 'forbidden', 'The credential may not do this at the provider.', { status: 403 });
  }
  if (/error: 404|repository '[^']*' not found/i.test(stderr)) {
    return new ProviderError(
      provider,
      'not_found',
      'The provider has no such repository, or the credential does not see it.',
      {
        status: 404,
      },
    );
  }
  if (/error: 429/.test(stderr)) {
    return new ProviderError(provider, 'rate_limited', 'The provider limits how often it is called.', { status: 429 });
  }
  return new ProviderError(provider, 'unavailable', 'The provider cannot be reached with git, or broke off.');
}

/** The credential as a setting of git, for the environment of the program alone: no file and no list of processes holds it. */
export function secretsOf({ address, authorization }: Remote): ReadonlyMap<string, string> {
  return new Map([[`http.${new URL(address).origin}/.extraHeader`, `Authorization: ${authorization}`]]);
}

/**
 * Runs a command of git that talks to the provider, in the budgets of its account.
 * @throws ProviderError, GitMissingError, the signal's reason
 */
export function askRemote(remote: Remote, call: Omit<GitCall, 'secrets'>): Promise<string> {
  const { context, provider } = remote.connection;
  const target = `${new URL(remote.url).host}/${remote.name}`;
  const counted = { provider: provider.key, method: `git ${call.args[0] ?? ''}`, target, buckets: bucketsOf(remote) };
  return context.client.counted({ ...counted, signal: call.signal }, async () => {
    try {
      return await gitText({ ...call, secrets: secretsOf(remote) });
    } catch (error) {
      throw error instanceof GitFailedError && !error.isOurs ? failureOf(provider.key, error) : error;
    }
  });
}
