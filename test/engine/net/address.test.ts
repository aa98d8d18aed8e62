import t from 'tap';
import { isPublicAddress, parseUrl } from '../../../engine/net/index.ts';

t.test('only addresses of the public internet are public', async (t) => {
  for (const address of ['8.8.8.8', '1.1.1.1', '93.184.215.14', '2606:4700:4700::1111', '2a00:1450:4001:830::200e']) {
    t.ok(isPublicAddress(address), address);
  }
  const others = [
    ...[
      '127.0.0.1',
      '127.255.255.254',
      '0.0.0.0',
      '0.1.2.3',
      '10.0.0.1',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
    ],
    ...['169.254.169.254', '100.64.0.1', '100.100.100.200', '192.0.0.192', '192.0.2.1', '198.18.0.1', '198.51.100.1'],
    ...['203.0.113.1', '192.88.99.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '168.63.129.16'],
    ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'fc00::1', 'fd00:ec2::254', 'ff02::1'],
    ...['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::127.0.0.1', '::8.8.8.8', '::ffff:0:127.0.0.1'],
    ...['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '2002:7f00:1::', '2002:808:808::1', '2001::1'],
    ...['2001:db8::1', '3fff::1', '100::1', '5f00::1', '4000::1', '2001:2::1', '2001:10::1', '2001:20::1'],
    ...['', 'localhost', 'example.com', '127.1.example', '8.8.8.8/32', ' '],
  ];
  for (const address of others) t.notOk(isPublicAddress(address), address);
});

t.test('only http and https addresses without credentials, on ports of websites, are taken', async (t) => {
  for (const [given, href] of [
    ['https://example.com', 'https://example.com/'],
    ['HTTP://Example.com:80/a#b', 'http://example.com/a'],
    ['http://example.com:8080/', 'http://example.com:8080/'],
    ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
    ['http://2130706433/', 'http://127.0.0.1/'],
    ['http://0x7f.1/', 'http://127.0.0.1/'],
    ['http://0177.0.0.1/', 'http://127.0.0.1/'],
    ['http://0/', 'http://0.0.0.0/'],
    ['http://１２７.0.0.1/', 'http://127.0.0.1/'],
  ] as const) {
    t.equal(parseUrl(given).href, href);
  }
  for (const given of [
    ...[
      '',
      'example.com',
      '//example.com',
      'ftp://example.com',
      'file:///etc/passwd',
      'gopher://example.com',
      'data:,a',
    ],
    ...[
      'javascript:alert(1)',
      'http://user@example.com',
      'http://user:secret@example.com',
      'http://:secret@example.com',
    ],
    ...['http://example.com:22', 'http://example.com:25', 'http://example.com:6379', 'http://example.com:5432'],
    ...[
      'http://example.com:0',
      'http://example.com:65536',
      'http://',
      'http://[::1',
      'http://1.2.3.256',
      'http://a b/',
    ],
    `http://example.com/${'a'.repeat(2_000)}`,
  ]) {
    t.throws(() => parseUrl(given), { name: 'NetError' }, given);
  }
});
