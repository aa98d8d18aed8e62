import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import { github } from '../../../engine/providers/github/index.ts';
import { datasetOf } from './dataset_calls.ts';
import { API, credential } from './github_calls.ts';
import { type Call, json, openClient, openServer } from './support.ts';

// A repository as GitHub's server has it: issues and pull requests in one numbering, in lists that are sorted anew for each request.

export const PLANTED = 'planted-4711';

export type Item = {
  number: number;
  created: string;
  updated: string;
  closed?: string | null;
  merged?: string | null;
  isPull?: boolean;
  labels?: readonly string[];
};

export const at = (second: number) => new Date(Date.UTC(2026, 10, 30, 12) + second * 1_000).toISOString();

/** Issues with the numbers from `first` on, each created and changed a second after the one before. */
export const issues = (count: number, first = 1): Item[] =>
  Array.from({ length: count }, (_, index) => ({
    number: first + index,
    created: at(-86_400 + first + index),
    updated: at(-3_600 + first + index),
  }));

/** The numbers of facts, in order. */
export const numbers = (facts: Iterable<{ values: Readonly<Record<string, unknown>> }>) =>
  [...facts].map(({ values }) => Number(values['number'])).sort((one, other) => one - other);
export const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

const person = { login: PLANTED, name: PLANTED, email: `${PLANTED}@example.com` };

function shown(item: Item, list: string) {
  const texts = { title: PLANTED, body: PLANTED, user: person, assignees: [person], milestone: { title: PLANTED } };
  return {
    ...texts,
    id: item.number * 10,
    node_id: `I_${item.number}`,
    number: item.number,
    state: item.closed ? 'closed' : 'open',
    created_at: item.created.replace('.000', ''),
    updated_at: item.updated.replace('.000', ''),
    closed_at: item.closed ?? null,
    labels: (item.labels ?? []).map((name) => ({ id: 1, name, description: PLANTED, color: 'fff' })),
    ...(list === 'pulls' ? { merged_at: item.merged ?? null, head: { label: PLANTED } } : {}),
    ...(list === 'issues' && item.isPull ? { pull_request: { merged_at: item.merged ?? null } } : {}),
  };
}

type Options = Readonly<{
  items?: readonly Item[];
  /** Runs before a response: what it changes is in there. */
  before?: (call: Call, items: Item[]) => void;
  /** Pages are named by a place, as those of long lists are. */
  withPlaces?: boolean;
  /** Responds in place of the server, where it returns true. */
  instead?: (call: Call, res: ServerResponse) => boolean;
  settings?: object;
}>;

export async function openRepository(test: Tap.Test, options: Options = {}) {
  const items: Item[] = [...(options.items ?? [])];

  function page(call: Call, res: ServerResponse, list: string): void {
    const { searchParams: query } = call.url;
    const field = query.get('sort') === 'created' ? 'created' : 'updated';
    const turn = query.get('direction') === 'asc' ? 1 : -1;
    const since = Date.parse(query.get('since') ?? '1970-01-01T00:00:00Z');
    const all = items
      .filter((one) => (list === 'pulls' ? one.isPull : Date.parse(one.updated) >= since))
      .sort((one, other) => turn * (Date.parse(one[field]) - Date.parse(other[field]) || one.number - other.number));
    const size = Number(query.get('per_page'));
    const number = Number(query.get('page') ?? 1);
    const here = all.slice((number - 1) * size, number * size);
    const next = new URL(`https://api.github.com/repositories/7/${list}${call.url.search}`);
    next.searchParams.set('page', String(number + 1));
    if (options.withPlaces) next.searchParams.set('after', `place-${number + 1}==`);
    const link = number * size < all.length ? `<${next}>; rel="next", <${next}>; rel="last"` : '<x>; rel="first"';
    const wrong = options.withPlaces && number > 1 && query.get('after') !== `place-${number}==`;
    if (wrong) json(res, 422, { message: PLANTED });
    else
      json(
        res,
        200,
        here.map((one) => shown(one, list)),
        { link },
      );
  }

  function counts(res: ServerResponse): void {
    const count = (some: readonly Item[]) => ({ totalCount: some.length });
    const pulls = items.filter((one) => one.isPull);
    const others = items.filter((one) => !one.isPull);
    const open = (some: readonly Item[]) => count(some.filter((one) => !one.closed));
    json(res, 200, {
      data: {
        repository: {
          nameWithOwner: 'Acme/Site',
          issues: count(others),
          pulls: count(pulls),
          openIssues: open(others),
          openPulls: open(pulls),
        },
      },
    });
  }

  const server = await openServer(test, (call, res) => {
    options.before?.(call, items);
    if (options.instead?.(call, res)) return;
    const list = /^\/repos\/acme\/site\/(issues|pulls)$/.exec(call.url.pathname)?.[1];
    if (call.url.pathname === '/graphql') counts(res);
    else if (list) page(call, res, list);
    else json(res, 404, { message: PLANTED });
  });
  const client = openClient(test, { [API]: server.origin });
  const settings = options.settings ?? { kind: 'github', owner: 'Acme', repositories: ['Site'] };
  const dataset = (key: string) => datasetOf(github, key, { client, credential, settings });
  /** What was asked of the lists. */
  const asked = () => server.calls.filter(({ method }) => method === 'GET').map(({ url }) => url.searchParams);
  return { server, client, items, dataset, asked };
}
