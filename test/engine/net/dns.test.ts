import t from 'tap';
import { createWebClient, nameResolver } from '../../../engine/net/index.ts';
import { openDns } from './dns_server.ts';
import { allows, openSite, PUBLIC, refuses, textOf } from './support.ts';

t.test('names are resolved by DNS, both families at once', async (t) => {
  const server = await openDns(
    t,
    (name) => ({ 'both.example': ['192.0.2.1', '2001:db8::1'], 'six.example': ['::1'] })[name] ?? null,
  );
  const resolve = nameResolver([server]);
  t.same(await resolve('both.example'), ['192.0.2.1', '2001:db8::1']);
  t.same(await resolve('six.example'), ['::1']);
  await t.rejects(resolve('nothing.invalid'), { code: /ENOTFOUND|EAI_AGAIN/ });
});

t.test(
  'a name whose answer changes with each question is refused or asked at the address that was checked',
  async (t) => {
    const forbidden = await openSite(t, (_req, res) => res.end('secret'), '127.0.0.1');
    const site = await openSite(t, (_req, res) => res.setHeader('connection', 'close').end('public'));
    let questions = 0;
    // A question is two messages, one a family.
    const server = await openDns(t, () => (Math.floor(questions++ / 2) % 2 === 0 ? [PUBLIC] : ['127.0.0.1']));
    const client = createWebClient({ allows, resolve: nameResolver([server]), connectMs: 2_000 });
    t.teardown(() => client.close());
    for (let turn = 0; turn < 3; turn += 1) {
      const response = await client.fetch(`http://rebinding.example:${site.port}/`);
      t.equal(await textOf(response.body), 'public');
      await refuses(
        t,
        client.fetch(`http://rebinding.example:${forbidden.port}/`),
        'address_refused',
        'the private turn',
      );
    }
    t.equal(forbidden.connections(), 0);
    t.equal(site.connections(), 3);
  },
);

t.test('one private address among public ones is enough', async (t) => {
  const forbidden = await openSite(t, (_req, res) => res.end('secret'), '127.0.0.1');
  const server = await openDns(t, () => [PUBLIC, '127.0.0.1', '::ffff:127.0.0.1', 'fd00::1']);
  const client = createWebClient({ allows, resolve: nameResolver([server]) });
  t.teardown(() => client.close());
  await refuses(t, client.fetch(`http://mixed.example:${forbidden.port}/`), 'address_refused', 'mixed');
  t.equal(forbidden.connections(), 0);
});

t.test('a silent name server costs no more than the time of the request', async (t) => {
  const server = await openDns(t, () => undefined);
  const client = createWebClient({ allows, resolve: nameResolver([server]) });
  t.teardown(() => client.close());
  await refuses(t, client.fetch('http://silent.example/', { totalMs: 200 }), 'timed_out', 'silent');
});
