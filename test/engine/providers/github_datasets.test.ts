import t from 'tap';
import { CursorMovedError } from '../../../engine/providers/dataset.ts';
import { at, issues, numbers, openRepository, PLANTED, upTo } from './repository_server.ts';
import { fails, json } from './support.ts';
import { failsAsDocumented } from './tool_calls.ts';

const now = new Date(at(0));

t.test('a repository of the settings is a source', async (test) => {
  const settings = { kind: 'github', owner: 'Acme', repositories: ['Site', 'shop'] };
  const { dataset, server } = await openRepository(test, { settings });
  test.same(await dataset('github.issues').discover(), [
    { resourceId: 'acme/site', environment: 'live', timezone: null },
    { resourceId: 'acme/shop', environment: 'live', timezone: null },
  ]);
  test.equal(server.calls.length, 0);
  const source = { resourceId: 'acme/other', environment: 'live', timezone: 'UTC' } as const;
  for (const key of ['github.issues', 'github.pulls', 'github.inventory']) {
    const round = dataset(key).round({ source, mode: 'tail', now });
    test.match(await fails(test, round, 'not_found', key), { isOurs: true });
  }
  test.equal(server.calls.length, 0, 'another repository is not asked for');
});

t.test('an issue is told by numbers, times and the names of its labels', async (test) => {
  const labels = ['ui', 'bug', 'bug'];
  const items = [
    { number: 3, created: at(-500), updated: at(-100), closed: at(-200), labels },
    { number: 4, created: at(-400), updated: at(-90), isPull: true, closed: at(-95), merged: at(-95) },
  ];
  const { dataset } = await openRepository(test, { items });
  const open = dataset('github.issues');
  const source = await open.source();
  const { facts } = await open.round({ source, mode: 'tail', now });
  const times = { created_at: Date.parse(at(-500)), closed_at: Date.parse(at(-200)) };
  test.same(facts, [
    {
      key: 'I_3',
      effectiveAt: times.created_at,
      contentAt: times.created_at,
      revision: Date.parse(at(-100)),
      values: { number: 3, state: 'closed', ...times, labels: 'bug\nui' },
    },
  ]);
  const pulls = await dataset('github.pulls').round({ source, mode: 'tail', now });
  test.match(pulls.facts, [{ key: 'I_4', values: { number: 4, merged_at: Date.parse(at(-95)), labels: null } }]);
  test.equal(pulls.facts.length, 1);
  for (const mode of ['tail', 'backfill', 'rescan'] as const) {
    for (const key of ['github.issues', 'github.pulls']) {
      const round = await dataset(key).round({ source, mode, now });
      test.equal(round.facts.length, 1, `${key}, ${mode}`);
      test.notMatch(JSON.stringify(round), PLANTED, 'no text of an issue, and no person');
    }
  }
});

t.test('an item keeps as many labels as it may have', async (test) => {
  const labels = Array.from({ length: 100 }, (_, index) => `${index}`.padStart(2, '0').padEnd(50, 'x'));
  const { dataset } = await openRepository(test, { items: [{ number: 1, created: at(-9), updated: at(-8), labels }] });
  const open = dataset('github.issues');
  const [fact] = (await open.round({ source: await open.source(), mode: 'tail', now })).facts;
  test.same(String(fact?.values['labels']).split('\n'), labels);
});

t.test('a scan reads all of it, with how many there are at both ends', async (test) => {
  const items = [...issues(240), ...issues(10, 241).map((one) => ({ ...one, isPull: true }))];
  let pages = 0;
  const { dataset, client } = await openRepository(test, {
    items,
    withPlaces: true,
    before({ method }, all) {
      if (method === 'POST') return;
      pages += 1;
      for (const one of all.filter(({ number }) => number % 30 === pages)) one.updated = at(-pages);
      if (pages === 2) all.push({ number: 251, created: at(-5), updated: at(-5) });
    },
  });
  const open = dataset('github.issues');
  const source = await open.source();
  const { pages: read, facts, covered } = await open.round({ source, mode: 'rescan', now, resumes: true });
  test.same(numbers(facts), [...upTo(240), 251], 'what changes stays in its place');
  test.same(
    read.map(({ total }) => total),
    [240, undefined, 241],
  );
  test.same(
    read.map(({ records }) => records),
    [100, 100, 51],
    'pull requests are among what was sent',
  );
  test.same(covered, [{ start: Date.parse(items[0]?.created ?? ''), end: now.getTime(), state: 'complete' }]);
  const pulls = await dataset('github.pulls').round({ source, mode: 'rescan', now });
  test.equal(pulls.facts.length, 10);
  test.equal(pulls.pages.at(-1)?.total, 10);
  const keys = new Set(client.taken.flat().map(({ key }) => key));
  test.same([...keys], ['github:account:i1:100/1.3', 'github:graphql:account:i1:100/1.3']);
});

t.test('an empty repository is known to be empty', async (test) => {
  const { dataset } = await openRepository(test);
  for (const key of ['github.issues', 'github.pulls']) {
    const open = dataset(key);
    const source = await open.source();
    for (const mode of ['tail', 'backfill'] as const) {
      const round = await open.round({ source, mode, now });
      test.match([round.facts, round.pages.length], [[], 1]);
      test.match(round.covered, [{ end: now.getTime(), state: 'complete' }], `${key}, ${mode}`);
    }
    const scan = await open.round({ source, mode: 'rescan', now });
    test.match(scan.pages, [{ total: 0, done: true, records: 0 }]);
  }
});

t.test('what is open is counted at midnight, in one picture of the day', async (test) => {
  const items = [
    ...issues(3),
    { number: 4, created: at(-9), updated: at(-8), closed: at(-8) },
    { number: 5, created: at(-9), updated: at(-8), isPull: true },
  ];
  const { dataset } = await openRepository(test, { items });
  const open = dataset('github.inventory');
  test.match(open.adapter, { isSnapshot: true, rhythm: { tail: 'midnight' } });
  const source = await open.source('America/Havana');
  // Clocks there showed 0:00 twice.
  const time = Date.UTC(2026, 10, 1, 4, 10);
  const round = await open.round({ source, mode: 'tail', now: new Date(time) });
  const start = Date.UTC(2026, 10, 1, 4);
  test.same(round.facts, [
    {
      key: '2026-11-01',
      effectiveAt: time,
      contentAt: start,
      revision: time,
      values: { day: '2026-11-01', open_issues: 3, open_pulls: 1 },
    },
  ]);
  test.same(round.covered, [{ start, end: start + 25 * 3_600_000, state: 'complete' }]);
});

t.test('a repository that is gone, has moved or has no issues ends in an error', async (test) => {
  for (const status of [301, 404, 410]) {
    const { dataset, server } = await openRepository(test, {
      instead(_, res) {
        json(res, status, { message: PLANTED }, { location: 'https://api.github.com/repositories/7/issues' });
        return true;
      },
    });
    for (const mode of ['tail', 'backfill', 'rescan'] as const) {
      const open = dataset('github.issues');
      await fails(test, open.round({ source: await open.source(), mode, now }), 'not_found', `${status}, ${mode}`);
    }
    test.equal(server.calls.length, 3, 'where it has moved is not asked');
  }
  const answers = [
    [{ errors: [{ type: 'NOT_FOUND', message: PLANTED }], data: { repository: null } }, 'not_found'],
    [{ errors: [{ type: 'FORBIDDEN', message: PLANTED }], data: null }, 'forbidden'],
    [{ errors: [{ type: 'RATE_LIMITED', message: PLANTED }] }, 'rate_limited'],
    [{ errors: [{ message: PLANTED }] }, 'failed'],
    [{ data: { repository: null } }, 'not_found'],
    [
      {
        data: {
          repository: {
            nameWithOwner: 'acme/moved',
            ...Object.fromEntries(
              ['issues', 'pulls', 'openIssues', 'openPulls'].map((key) => [key, { totalCount: 1 }]),
            ),
          },
        },
      },
      'not_found',
    ],
    [[null], 'failed'],
  ] as const;
  for (const [answer, reason] of answers) {
    const { dataset } = await openRepository(test, {
      instead(_, res) {
        json(res, 200, answer);
        return true;
      },
    });
    const open = dataset('github.inventory');
    const round = open.round({ source: await open.source(), mode: 'tail', now });
    const error = await fails(test, round, reason, JSON.stringify(answer));
    test.notMatch(error.message, PLANTED);
    test.equal(error.retryNotBefore !== undefined, reason === 'rate_limited');
  }
});

t.test('a place that GitHub does not know any more begins the round anew', async (test) => {
  let isOver = false;
  const { dataset } = await openRepository(test, {
    items: issues(150),
    withPlaces: true,
    instead({ url }, res) {
      if (!isOver || !url.searchParams.has('after')) return false;
      json(res, 422, { message: PLANTED });
      return true;
    },
  });
  const open = dataset('github.issues');
  const source = await open.source();
  const afterPage = () => {
    isOver = true;
  };
  await test.rejects(open.round({ source, mode: 'rescan', now, afterPage }), CursorMovedError);
});

t.test('faults end the round, and it goes on from the page before', async (test) => {
  for (const [key, mode] of [
    ['github.issues', 'tail'],
    ['github.issues', 'backfill'],
    ['github.pulls', 'rescan'],
    ['github.inventory', 'tail'],
  ] as const) {
    await failsAsDocumented(test, `${key}, ${mode}`, 'read', async (reply) => {
      const { dataset, server } = await openRepository(test, {
        instead(_, res) {
          reply(res);
          return true;
        },
      });
      const open = dataset(key);
      return { done: open.round({ source: await open.source(), mode, now }), sent: () => server.calls.length };
    });
  }
  let fault: object | undefined;
  const { dataset } = await openRepository(test, {
    items: issues(150),
    instead(_, res) {
      if (fault) json(res, 200, fault);
      return fault !== undefined;
    },
  });
  const open = dataset('github.issues');
  const source = await open.source();
  let cursor: unknown;
  for (const answer of [[null, null], [{ number: 1 }], { items: [] }]) {
    const afterPage = (page: { cursor: unknown }) => {
      cursor = page.cursor;
      fault = answer;
    };
    await fails(test, open.round({ source, mode: 'tail', now, afterPage }), 'failed', JSON.stringify(answer));
    fault = undefined;
  }
  const rest = await open.round({ source, mode: 'tail', now, cursor });
  test.same(numbers(rest.facts), upTo(150).slice(100));
});
