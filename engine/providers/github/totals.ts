import { z } from 'zod';
import { type Measured, readMeasured } from '../measured.ts';
import { ProviderError, type ProviderReason, resetAt } from '../outgoing/index.ts';
import { accountBucket } from '../provider.ts';
import { requestOf } from './api.ts';
import { nameOf } from './arguments.ts';
import { caseless } from './connection.ts';
import { type Collecting, repositoryOf } from './repository.ts';
import { API, site } from './site.ts';

// REST counts issues and pull requests together, or by an index that lags behind: GraphQL counts each, at once.
const QUERY = `query ($owner: String!, $name: String!) {
  repository(owner: $owner, name: $name) {
    nameWithOwner
    issues { totalCount }
    pulls: pullRequests { totalCount }
    openIssues: issues(states: OPEN) { totalCount }
    openPulls: pullRequests(states: OPEN) { totalCount }
  }
}`;

const count = z.object({ totalCount: z.int().min(0) }).transform(({ totalCount }) => totalCount);
const counted = z.object({
  data: z
    .object({
      repository: z
        .object({ nameWithOwner: z.string(), issues: count, pulls: count, openIssues: count, openPulls: count })
        .nullish(),
    })
    .nullish(),
  errors: z.array(z.object({ type: z.string().optional() })).optional(),
});

export type Totals = Readonly<Record<'issues' | 'pulls' | 'openIssues' | 'openPulls', number>>;

const REASONS: Readonly<Record<string, ProviderReason>> = {
  NOT_FOUND: 'not_found',
  FORBIDDEN: 'forbidden',
  RATE_LIMITED: 'rate_limited',
};
const MESSAGE = 'The provider does not count what is in the repository.';

/** How much there is, and is open. @throws ProviderError, the signal's reason */
export async function readTotals(call: Collecting): Promise<Measured<Totals>> {
  const { context, access, now } = call;
  const { owner, repo } = repositoryOf(call);
  const { headers, ...rest } = requestOf(context, access.credential);
  const { data, ...measured } = await readMeasured(
    context,
    site,
    {
      ...rest,
      // It changes nothing.
      effect: 'read',
      method: 'POST',
      url: `${API}/graphql`,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ query: QUERY, variables: { owner, name: repo } }),
      // 5,000 points an hour, beside those of REST; this is one.
      buckets: [accountBucket('github:graphql', context, 100, 1.3)],
    },
    counted,
  );
  const [error] = data.errors ?? [];
  if (error) {
    const reason = REASONS[error.type ?? ''] ?? 'failed';
    const reset = resetAt(measured.headers['x-ratelimit-reset'], now.getTime());
    const retryNotBefore = reset ?? new Date(now.getTime() + 60_000);
    throw new ProviderError('github', reason, MESSAGE, reason === 'rate_limited' ? { retryNotBefore } : {});
  }
  const repository = data.data?.repository;
  // Under its old name GraphQL leads to where a repository has moved, which the settings do not name.
  if (!repository || caseless(repository.nameWithOwner) !== caseless(nameOf({ owner, repo }))) {
    throw new ProviderError('github', 'not_found', MESSAGE);
  }
  const { issues, pulls, openIssues, openPulls } = repository;
  return { ...measured, data: { issues, pulls, openIssues, openPulls } };
}
