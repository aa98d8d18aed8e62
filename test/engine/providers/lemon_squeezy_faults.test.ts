import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { FactPage } from '../../../engine/providers/dataset.ts';
import { extent, keysOf } from './dataset_calls.ts';
import { HOUR, NOW, openSales, recordsOf, year } from './lemon_squeezy_sales_support.ts';
import { order, PLANTED } from './lemon_squeezy_shop.ts';
import { fails, json } from './support.ts';

const FAULTS: readonly [
  what: string,
  reason: 'rate_limited' | 'unavailable' | 'failed',
  send: (page: object, res: ServerResponse) => unknown,
][] = [
  ['429', 'rate_limited', (_, res) => void json(res, 429, { errors: [{ title: PLANTED }] }, { 'retry-after': '40' })],
  ['503', 'unavailable', (_, res) => void json(res, 503, { errors: [] }, { 'retry-after': '40' })],
  [
    'a body that is cut off',
    'unavailable',
    (page, res) => {
      const body = JSON.stringify(page);
      res.writeHead(200, { 'content-type': 'application/vnd.api+json', 'content-length': String(body.length) });
      res.write(body.slice(0, body.length / 2), () => res.destroy());
    },
  ],
  ['a page of nulls', 'failed', (page) => ({ ...page, data: Array(100).fill(null) })],
  ['no page', 'failed', (page) => ({ ...page, data: null })],
  [
    'a row of nulls',
    'failed',
    (page) => ({ ...page, data: [{ type: 'orders', id: '1', attributes: { store_id: null, total: null } }] }),
  ],
  [
    'a sentence for a status',
    'failed',
    (page) => ({ ...page, data: [order(1, NOW, { status: `${PLANTED} is paid` })] }),
  ],
];

t.test('what goes wrong at a page is told, and the round goes on from the one before it', async (test) => {
  const whole = year();
  for (const [what, reason, reply] of FAULTS) {
    const { shop, round, client } = await openSales(test, { ...whole });
    let calls = 0;
    shop.send = (page, _call, res) => {
      calls += 1;
      return calls < 4 ? page : reply(page, res);
    };
    const pages: FactPage[] = [];
    const error = await fails(test, round('rescan', { afterPage: (page) => pages.push(page) }), reason, what);
    test.equal(pages.length, 3, what);
    test.notMatch(JSON.stringify([error, error.message]), PLANTED);
    if (reason !== 'failed' && what !== 'a body that is cut off') {
      test.ok(error.retryNotBefore, what);
      test.ok(client.postponed.length > 0, `${what}: nobody asks before`);
    }
    shop.send = (page) => page;
    const rest = await round('rescan', { cursor: pages.at(-1)?.cursor, now: new Date(NOW + HOUR) });
    test.same(keysOf({ facts: [...pages.flatMap(({ facts }) => facts), ...rest.facts] }), recordsOf(shop), what);
    test.same(extent([...pages.flatMap(({ covered = [] }) => covered), ...rest.covered]).end, NOW);
  }
});
