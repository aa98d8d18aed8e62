import t from 'tap';
import { known } from './dataset_calls.ts';
import { at, type Item, issues, numbers, openRepository, upTo } from './repository_server.ts';

const now = new Date(at(0));

for (const resumes of [false, true]) {
  t.test(`changes are read oldest first, ${resumes ? 'by a process each page' : 'in one go'}`, async (test) => {
    // Twenty of one second lie across the border of the first page.
    const items = issues(250).map((one) =>
      one.number > 90 && one.number <= 110 ? { ...one, updated: at(-3_600 + 95) } : one,
    );
    const { dataset, asked } = await openRepository(test, { items });
    const open = dataset('github.issues');
    const source = await open.source();
    const round = await open.round({ source, mode: 'tail', now, resumes });
    test.same(numbers(known(round.facts).values()), upTo(250));
    test.equal(round.facts.length, 250, 'what comes again is left out');
    test.same(
      asked().map((query) => [query.get('sort'), query.get('direction'), query.get('state'), query.get('page')]),
      asked().map(() => ['updated', 'asc', 'all', null]),
    );
    test.equal(asked()[0]?.get('since'), at(-7 * 86_400), 'a week before, as the backfill begins about now');
    test.same(
      round.covered
        .flatMap(({ start, end }) => [start, end])
        .slice(1, -1)
        .filter((_, index) => index % 2 === 0),
      round.pages.slice(0, -1).map((page) => page.facts.at(-1)?.revision),
      'a page is known to its last change',
    );
    test.equal(round.covered.at(-1)?.end, now.getTime());

    const again = await open.round({ source, mode: 'tail', now, cursor: round.cursor, resumes });
    test.same([again.facts.length, again.pages.length], [0, 1], 'nothing has changed');
    test.ok((again.pages[0]?.records ?? 0) > 0, 'though the last minute was read again');
  });

  t.test(`issues that change between pages are told again, ${resumes ? 'resumed' : 'in one go'}`, async (test) => {
    let pages = 0;
    const { dataset, items } = await openRepository(test, {
      items: issues(230),
      before(_, all) {
        pages += 1;
        // Some of those that were read, and some that were not: all of them move to the end of the list.
        for (const one of all.filter(({ number }) => number % 40 === pages)) one.updated = at(-pages);
      },
    });
    const open = dataset('github.issues');
    const source = await open.source();
    const first = await open.round({ source, mode: 'tail', now, resumes });
    const second = await open.round({ source, mode: 'tail', now, cursor: first.cursor, resumes });
    const all = known([...first.facts, ...second.facts]);
    test.same(numbers(all.values()), upTo(230));
    for (const { number, updated } of items) {
      if (Date.parse(updated) < Date.parse(at(-pages)))
        test.equal(all.get(`I_${number}`)?.revision, Date.parse(updated));
    }
  });

  t.test(
    `more changes in one second than a page holds are all read, ${resumes ? 'resumed' : 'in one go'}`,
    async (test) => {
      const second = at(-1_000);
      let changed = 0;
      const { dataset, asked, items } = await openRepository(test, {
        items: [...issues(30), ...issues(320, 31).map((one) => ({ ...one, updated: second }))],
        before({ url }, all) {
          // Those of the page that was read leave the second: what is behind moves up.
          if (url.searchParams.get('sort') !== 'created' || changed >= 40) return;
          for (const one of all.slice(30 + changed, 50 + changed)) one.updated = at(-30 + changed);
          changed += 20;
        },
      });
      const open = dataset('github.issues');
      const source = await open.source();
      const round = await open.round({ source, mode: 'tail', now, resumes });
      test.same(numbers(known(round.facts).values()), upTo(350));
      test.ok(asked().some((query) => query.get('sort') === 'created'));
      test.equal(round.covered.at(-1)?.end, now.getTime());
      const later = new Date(at(900));
      const again = await open.round({ source, mode: 'tail', now: later, cursor: round.cursor, resumes });
      const all = known([...round.facts, ...again.facts]);
      for (const { number, updated } of items) {
        test.equal(all.get(`I_${number}`)?.revision, Date.parse(updated), 'also what changed behind the page');
      }
      const calm = await open.round({ source, mode: 'tail', now: later, cursor: again.cursor, resumes });
      test.equal(calm.facts.length, 0);
    },
  );

  t.test(`pull requests are read back to what is known, ${resumes ? 'resumed' : 'in one go'}`, async (test) => {
    const items = issues(260).map((one) => ({ ...one, isPull: true }));
    let isMoving = false;
    const { dataset, asked } = await openRepository(test, {
      items,
      before(_, all) {
        if (isMoving) for (const one of all.filter(({ number }) => number % 50 === 7)) one.updated = at(100);
      },
    });
    const open = dataset('github.pulls');
    const source = await open.source();
    isMoving = true;
    const first = await open.round({ source, mode: 'tail', now, resumes });
    test.same(numbers(known(first.facts).values()), upTo(260));
    test.equal(asked()[0]?.get('since'), null, 'there is no such parameter');
    test.match(first.covered.at(-1), { start: Date.parse(at(-7 * 86_400)), state: 'complete' });
    test.equal(first.covered[0]?.end, now.getTime());
    isMoving = false;
    const later = new Date(at(900));
    const second = await open.round({ source, mode: 'tail', now: later, cursor: first.cursor, resumes });
    test.same([second.pages.length, second.facts.length], [1, 0], 'up to what is known, and nothing of it again');
    test.equal(second.covered[0]?.end, later.getTime());
  });
}

t.test('a crowd of the same second fits into a cursor, with the one before it', async (test) => {
  const crowd = (first: number, second: number) =>
    issues(100, first).map((one) => ({ ...one, isPull: true, updated: at(second) }));
  const { dataset, items } = await openRepository(test, { items: crowd(9_000_000, -10) });
  const open = dataset('github.pulls');
  const source = await open.source();
  const first = await open.round({ source, mode: 'tail', now });
  items.push(...crowd(9_100_000, 5), ...crowd(9_200_000, 4));
  const second = await open.round({
    source,
    mode: 'tail',
    now: new Date(at(900)),
    cursor: first.cursor,
    resumes: true,
  });
  test.equal(known([...first.facts, ...second.facts]).size, 300);
  test.equal(second.facts.length, 200, 'what was known is left out');
});

t.test('a backfill reads what changed in twelve months, newest change first', async (test) => {
  const items: Item[] = [
    ...issues(120),
    // Created long before, and closed within.
    { number: 500, created: '2019-03-01T00:00:00Z', updated: '2026-02-01T00:00:00Z', closed: '2026-02-01T00:00:00Z' },
    { number: 501, created: '2019-03-02T00:00:00Z', updated: '2025-10-30T23:59:59Z' },
  ];
  for (const withPlaces of [false, true]) {
    const { dataset, asked } = await openRepository(test, { items, withPlaces });
    const open = dataset('github.issues');
    const source = await open.source();
    for (const resumes of [false, true]) {
      const round = await open.round({ source, mode: 'backfill', now, resumes });
      test.same(numbers(round.facts), [...upTo(120), 500]);
      test.ok(Number(round.facts[0]?.revision) > Number(round.facts.at(-1)?.revision));
      test.same(round.covered, [
        { start: Number(round.pages[0]?.facts.at(-1)?.revision), end: now.getTime(), state: 'complete' },
        { start: Date.UTC(2025, 9, 31), end: Number(round.pages[0]?.facts.at(-1)?.revision), state: 'complete' },
      ]);
    }
    test.equal(asked()[0]?.get('since'), '2025-10-31T00:00:00.000Z');
    test.equal(asked()[1]?.get('after'), withPlaces ? 'place-2==' : null);
  }
});
