// What GitHub does not do, and must not cost us facts where it does.
import t from 'tap';
import { at, openRepository } from './repository_server.ts';
import { fails, json } from './support.ts';

for (const key of ['github.issues', 'github.pulls']) {
  t.test(`${key}: what is dated in the future hides nothing that comes before`, async (test) => {
    const isPull = key === 'github.pulls';
    const arrived = { number: 2, created: at(60), updated: at(60), isPull };
    let isThere = false;
    const { dataset } = await openRepository(test, {
      items: [{ number: 1, created: at(-60), updated: at(365 * 86_400), isPull }],
      before: (_call, items) => {
        if (isThere && items.length === 1) items.push(arrived);
      },
    });
    const open = dataset(key);
    const source = await open.source();
    const now = new Date(at(0));
    const first = await open.round({ source, mode: 'tail', now });
    test.match(first.facts, [{ key: 'I_1' }]);
    test.ok(
      first.covered.every(({ end }) => end <= now.getTime()),
      'nothing is known of the future',
    );
    isThere = true;
    const second = await open.round({ source, mode: 'tail', now: new Date(at(900)), cursor: first.cursor });
    test.ok(
      second.facts.some((fact) => fact.key === 'I_2'),
      'what is new is told',
    );
  });

  t.test(`${key}: a page that leads to itself ends the round`, async (test) => {
    const { dataset } = await openRepository(test, {
      instead: (call, res) => {
        if (!/\/(issues|pulls)$/.test(call.url.pathname)) return false;
        json(res, 200, [], { link: `<https://api.github.com${call.url.pathname}?page=2>; rel="next"` });
        return true;
      },
    });
    const open = dataset(key);
    const round = open.round({ source: await open.source(), mode: 'backfill', now: new Date(at(0)) });
    await fails(test, round, 'failed', key);
  });
}

t.test('an empty page with others behind it says nothing of their time', async (test) => {
  let pages = 0;
  const { dataset } = await openRepository(test, {
    items: [{ number: 1, created: at(-60), updated: at(-60) }],
    instead: (call, res) => {
      pages += 1;
      if (pages > 1) return false;
      json(res, 200, [], { link: `<https://api.github.com${call.url.pathname}?page=1>; rel="next"` });
      return true;
    },
  });
  const open = dataset('github.issues');
  const { pages: read, facts } = await open.round({
    source: await open.source(),
    mode: 'backfill',
    now: new Date(at(0)),
  });
  test.same(read[0]?.covered, []);
  test.match(facts, [{ key: 'I_1' }]);
});
