import t from 'tap';
import { createWebClient, type Resolve, type WebClientOptions } from '../../../engine/net/index.ts';
import { allows, openForbidden, openSite, PUBLIC, refuses, textOf } from './support.ts';

function openClient(test: { teardown: (end: () => Promise<void>) => unknown }, options: WebClientOptions = {}) {
  const client = createWebClient({ allows, ...options });
  test.teardown(() => client.close());
  return client;
}

/** A resolver that gives each name these answers, one after the other; the last one stays. */
function names(answers: Readonly<Record<string, readonly (readonly string[])[]>>) {
  const asked: string[] = [];
  const resolve: Resolve = async (name) => {
    const turn = asked.filter((earlier) => earlier === name).length;
    asked.push(name);
    return answers[name]?.[Math.min(turn, answers[name].length - 1)] ?? [];
  };
  return { asked, resolve };
}

const FORMS = [
  ...['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
  ...['2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001', '127.1', '0', '0.0.0.0', '[::]'],
  ...['127.0.0.3', '１２７.0.0.1', '127。0。0。1', '127.0.0.1.', '[0:0:0:0:0:ffff:127.0.0.1]'],
  ...['[64:ff9b::7f00:1]', '[2002:7f00:1::]', '169.254.169.254', '[fd00:ec2::254]', '168.63.129.16', '10.0.0.1'],
];

t.test('no form of a private address is connected to', async (t) => {
  const forbidden = await openForbidden(t);
  const client = openClient(t);
  for (const form of FORMS) {
    await refuses(t, client.fetch(`http://${form}:${forbidden.port}/`), 'address_refused', form);
  }
  t.equal(forbidden.connections(), 0);
});

t.test('no redirect leads to a private address, in whatever form', async (t) => {
  const forbidden = await openForbidden(t);
  let target = '';
  // Headers are bytes, which Node writes as Latin-1.
  const site = await openSite(t, (_req, res) =>
    res.writeHead(302, { location: Buffer.from(target).toString('latin1') }).end(),
  );
  const client = openClient(t);
  for (const form of FORMS) {
    for (target of [`http://${form}:${forbidden.port}/secret`, `//${form}:${forbidden.port}/`]) {
      await refuses(t, client.fetch(site.origin), 'address_refused', target);
    }
  }
  for (target of [
    ...['file:///etc/passwd', 'ftp://127.0.0.1/', `http://user:secret@${PUBLIC}:${site.port}/`, 'http://a:25/'],
    ...['javascript:1', 'gopher://127.0.0.1:70/', 'http://[', 'data:text/plain,a'],
  ]) {
    await refuses(t, client.fetch(site.origin), 'url_refused', target);
  }
  t.equal(forbidden.connections(), 0);
});

t.test('a redirect in raw UTF-8 or Latin-1 leads where it says', async (t) => {
  for (const [encoding, path] of [
    ['utf8', '/stra%C3%9Fe/%E6%97%A5'],
    ['latin1', '/stra%C3%9Fe'],
  ] as const) {
    const location = Buffer.from(decodeURI(path), encoding).toString('latin1');
    const site = await openSite(t, (req, res) =>
      req.url === '/' ? res.writeHead(301, { location }).end() : res.end('there'),
    );
    const response = await openClient(t).fetch(site.origin);
    t.equal(await textOf(response.body), 'there');
    t.same(site.paths, ['/', path], encoding);
  }
});

t.test('a name of which any address is private is refused', async (t) => {
  const forbidden = await openForbidden(t);
  const site = await openSite(t, (_req, res) => res.end('public'));
  const { resolve } = names({
    'mixed.example': [[PUBLIC, '127.0.0.1']],
    'mixed-v6.example': [[PUBLIC, '::1']],
    'mapped.example': [[PUBLIC, '::ffff:127.0.0.1']],
    'scoped.example': [['fe80::1%lo']],
    'nat64.example': [['64:ff9b::7f00:1']],
    'garbage.example': [['not an address']],
    'private.example': [['10.1.2.3']],
  });
  const client = openClient(t, { resolve });
  for (const host of ['mixed', 'mixed-v6', 'mapped', 'scoped', 'nat64', 'garbage', 'private']) {
    for (const port of [forbidden.port, site.port]) {
      await refuses(t, client.fetch(`http://${host}.example:${port}/`), 'address_refused', host);
    }
  }
  await refuses(t, client.fetch('http://nothing.example/'), 'name_unknown', 'fetch');
  t.equal(forbidden.connections() + site.connections(), 0);
});

t.test('a name that changes after the check is still asked at the checked address', async (t) => {
  // The same port on the public and on the private address: only the address decides where the request goes.
  const forbidden = await openSite(t, (_req, res) => res.end('secret'), '127.0.0.1');
  const site = await openSite(t, (_req, res) => res.setHeader('connection', 'close').end('public'), PUBLIC);
  const { asked, resolve } = names({ 'rebinding.example': [[PUBLIC], ['127.0.0.1']] });
  const client = openClient(t, { resolve });
  const response = await client.fetch(`http://rebinding.example:${site.port}/`);
  t.equal(await textOf(response.body), 'public');
  t.same(asked, ['rebinding.example'], 'it is resolved once a connection');
  await refuses(t, client.fetch(`http://rebinding.example:${forbidden.port}/`), 'address_refused', 'fetch');
  await refuses(t, client.fetch(`http://rebinding.example:${site.port}/`), 'address_refused', 'fetch');
  t.equal(forbidden.connections(), 0);
  t.equal(site.connections(), 1);
});

t.test('a redirect to a name that has become private is refused', async (t) => {
  const forbidden = await openForbidden(t);
  const { resolve } = names({ 'turning.example': [[PUBLIC], ['127.0.0.1']] });
  const site = await openSite(t, (_req, res) =>
    res.writeHead(307, { location: `http://turning.example:${forbidden.port}/` }).end(),
  );
  const client = openClient(t, { resolve });
  await refuses(t, client.fetch(`http://turning.example:${site.port}/`), 'address_refused', 'fetch');
  t.equal(forbidden.connections(), 0);
});

t.test('the name stays in Host', async (t) => {
  const hosts: (string | undefined)[] = [];
  const site = await openSite(t, (req, res) => {
    hosts.push(req.headers.host);
    res.end();
  });
  const { resolve } = names({ 'shop.example': [[PUBLIC]] });
  const client = openClient(t, { resolve });
  const response = await client.fetch(`http://shop.example:${site.port}/`);
  await textOf(response.body);
  t.same(hosts, [`shop.example:${site.port}`]);
});

t.test('with ALLOW_PRIVATE_ADDRESSES all are asked', async (t) => {
  const site = await openSite(t, (_req, res) => res.end('here'), '127.0.0.1');
  const client = openClient(t, { allowPrivateAddresses: true });
  const response = await client.fetch(`http://localhost:${site.port}/`);
  t.equal(await textOf(response.body), 'here');
});
