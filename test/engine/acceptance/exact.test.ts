import fc from 'fast-check';
import t from 'tap';
import { deepEqual, type ExactValue, parseExact } from '../../../engine/acceptance/exact_json.ts';
import { compareNumbers, ExactNumber } from '../../../engine/acceptance/exact_number.ts';
import { JSON_POINTER, locate, pointerTokens } from '../../../engine/acceptance/json_pointer.ts';

const compare = (a: string, b: string) => compareNumbers(new ExactNumber(a), new ExactNumber(b));

t.test('numbers compare as they were written', async (t) => {
  const equal = [
    ['1', '1.0'],
    ['100', '1e2'],
    ['0.001', '1E-3'],
    ['-0', '0'],
    ['0e99', '0.000'],
    ['12300', '1.23e+4'],
    ['1e400', '10e399'],
    ['9007199254740993', '9007199254740993.000'],
  ] as const;
  for (const [a, b] of equal) t.equal(compare(a, b), 0, `${a} = ${b}`);
  const ascending = [
    '-1e400',
    '-2',
    '-1.5',
    '-1',
    '-1e-400',
    '0',
    '1e-400',
    '0.1',
    '0.1000000000000000055',
    '0.9',
    '1',
    '9',
    '10',
    '99',
    '100',
    '9007199254740992',
    '9007199254740993',
    '9007199254740993.5',
    '1e400',
    '1e99999999999999999999999',
  ];
  for (const [i, a] of ascending.entries()) {
    for (const [j, b] of ascending.entries()) t.equal(Math.sign(compare(a, b)), Math.sign(i - j), `${a} ? ${b}`);
  }
  t.throws(() => compare('1'.repeat(20_000), '1'), RangeError);
});

t.test('integers compare as BigInt does, whatever their form', async (t) => {
  const integers = fc.property(fc.bigInt(), fc.bigInt(), fc.nat(5), (a, b, zeros) => {
    const expected = a < b ? -1 : a > b ? 1 : 0;
    const shifted = `${a}${'0'.repeat(zeros)}e-${zeros}`;
    return Math.sign(compare(shifted, String(b))) === expected && Math.sign(compare(`${a}.0`, String(b))) === expected;
  });
  t.doesNotThrow(() => fc.assert(integers));
  const doubles = fc.property(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    (a, b) => Math.sign(compareNumbers(a, b)) === (a < b ? -1 : a > b ? 1 : 0),
  );
  t.doesNotThrow(() => fc.assert(doubles));
});

t.test('parsing keeps what a float would change, and only that', async (t) => {
  t.same(parseExact('{"a":0.1,"b":[9007199254740993,1.50]}'), {
    a: 0.1,
    b: [new ExactNumber('9007199254740993'), new ExactNumber('1.50')],
  });
  t.ok(deepEqual(parseExact('1.50'), 1.5));
  t.notOk(deepEqual(parseExact('0.1000000000000000055'), 0.1));
});

t.test('values are equal as JSON', async (t) => {
  const same = (a: string, b: string) => deepEqual(parseExact(a), parseExact(b));
  t.ok(same('{"a":[1,{"b":null}],"c":"x"}', '{"c":"x","a":[1.0,{"b":null}]}'));
  for (const [a, b] of [
    ['[1,2]', '[2,1]'],
    ['[1]', '[1,1]'],
    ['{"a":1}', '{"a":1,"b":1}'],
    ['{"a":null}', '{"b":null}'],
    ['{}', '[]'],
    ['null', '{}'],
    ['"1"', '1'],
    ['0', 'false'],
    ['"a"', '"A"'],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":2}}'],
    ['{}', '{"__proto__":{}}'],
    ['{"toString":1}', '{"x":1}'],
  ] as const) {
    t.notOk(same(a, b), `${a} ≠ ${b}`);
    t.notOk(same(b, a), `${b} ≠ ${a}`);
  }
});

t.test('pointers of RFC 6901 find their values', async (t) => {
  const text = JSON.stringify({
    foo: ['bar', 'baz'],
    '': 0,
    'a/b': 1,
    'c%d': 2,
    'e^f': 3,
    'g|h': 4,
    'i\\j': 5,
    'k"l': 6,
    ' ': 7,
    'm~n': 8,
  });
  const cases: [string, string][] = [
    ['', text],
    ['/foo', '["bar","baz"]'],
    ['/foo/0', '"bar"'],
    ['/', '0'],
    ['/a~1b', '1'],
    ['/c%d', '2'],
    ['/e^f', '3'],
    ['/g|h', '4'],
    ['/i\\j', '5'],
    ['/k"l', '6'],
    ['/ ', '7'],
    ['/m~0n', '8'],
  ];
  for (const [pointer, value] of cases) t.equal(locate(text, pointer), value, JSON.stringify(pointer));
  for (const pointer of ['/foo/2', '/foo/-', '/foo/00', '/foo/1e0', '/foo/0/x', '/nope', '/foo/length']) {
    t.equal(locate(text, pointer), null, pointer);
  }
  t.same(pointerTokens('/~01/~10'), ['~1', '/0']);
  for (const bad of ['a', '/~', '/~2', '/a~', 'a/b']) t.notOk(JSON_POINTER.test(bad), bad);
});

t.test('of two members with one name the last counts, and white space and escapes do not matter', async (t) => {
  t.equal(locate('{"a":1,"a":2}', '/a'), '2');
  t.equal(locate(' \n{ "\\u0061" :\t[ 1 , {"x" : "}\\\\\\"]" } ] } ', '/a/1/x'), '"}\\\\\\"]"');
  t.equal(locate('{"a" : -1.5e3 }', '/a'), '-1.5e3');
  t.equal(locate('[true,false,null]', '/2'), 'null');
  t.equal(locate('[[],{},[[]],1]', '/3'), '1');
  t.equal(locate('[]', '/0'), null);
  t.equal(locate('{}', '/0'), null);
  t.equal(locate('{"\\\\":1,"b":2}', '/b'), '2');
});

t.test('looking in the text finds what parsing finds', async (t) => {
  const everyOrganization = (value: ExactValue, path: string[] = []): [string[], ExactValue][] => [
    [path, value],
    ...(typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([key, item]) => everyOrganization(item as ExactValue, [...path, key]))
      : []),
  ];
  const agree = fc.property(fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' }), fc.nat(3), (value, indent) => {
    const text = JSON.stringify(value, null, indent);
    return everyOrganization(JSON.parse(text)).every(([path, expected]) => {
      const pointer = path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
      const found = locate(text, pointer);
      return found !== null && deepEqual(parseExact(found), expected);
    });
  });
  t.doesNotThrow(() => fc.assert(agree, { numRuns: 300 }));
});

t.test('a document nested a million deep is walked without a stack', async (t) => {
  const deep = `{"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)},"b":7}`;
  t.equal(locate(deep, '/b'), '7');
});
