import t from 'tap';
import {
  HIDDEN,
  repeating,
  secretTexts,
  withoutSecrets,
  withoutTexts,
  writtenForms,
} from '../../engine/secret_values.ts';

const secret = { type: 'string', writeOnly: true };
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

t.test('what is marked is hidden, wherever it stands', async (test) => {
  const given = { key: 'k', open: 'o', list: [{ key: 'k', n: 1 }], more: { other: 'k' } };
  for (const [name, schema, shown] of [
    ['nothing', object({ key: { type: 'string' } }), given],
    ['writeOnly', object({ key: secret }), { ...given, key: HIDDEN }],
    ['a password', object({ key: { type: 'string', format: 'password' } }), { ...given, key: HIDDEN }],
    ['not writeOnly', object({ key: { writeOnly: false } }), given],
    ['members', object({ list: { items: object({ key: secret }) } }), { ...given, list: [{ key: HIDDEN, n: 1 }] }],
    ['first members', object({ list: { prefixItems: [secret] } }), { ...given, list: [HIDDEN] }],
    ['a whole object', object({ more: { writeOnly: true } }), { ...given, more: HIDDEN }],
    [
      'other names',
      object({ more: object({}, { additionalProperties: secret }) }),
      { ...given, more: { other: HIDDEN } },
    ],
    [
      'patterns',
      object({}, { patternProperties: { '^key$': secret } }),
      { key: HIDDEN, open: HIDDEN, list: HIDDEN, more: HIDDEN },
    ],
    ['a branch', object({ key: { anyOf: [{ type: 'null' }, secret] } }), { ...given, key: HIDDEN }],
    ['branches of branches', { oneOf: [{ allOf: [object({ key: secret })] }] }, { ...given, key: HIDDEN }],
    [
      'a reference',
      { ...object({ key: { $ref: '#/$defs/a~1b' } }), $defs: { 'a/b': secret } },
      { ...given, key: HIDDEN },
    ],
    ['the whole', { type: 'object', writeOnly: true }, { key: HIDDEN, open: HIDDEN, list: HIDDEN, more: HIDDEN }],
  ] as const) {
    test.same(withoutSecrets(given, schema), shown, name);
  }
  test.same(withoutSecrets(given, null), given);
});

t.test('references in circles, and to nowhere, end', async (test) => {
  const twice = {
    anyOf: [{ $ref: '#/$defs/node' }, { $ref: '#' }, { $ref: '#/$defs/none' }, { $ref: 'https://x.example' }],
  };
  const schema = {
    ...object({ inner: twice, key: secret }),
    $defs: { node: { ...object({ inner: twice, key: secret }), ...twice } },
  };
  test.same(withoutSecrets({ inner: { inner: { key: 'k', n: 1 } } }, schema), {
    inner: { inner: { key: HIDDEN, n: 1 } },
  });
});

t.test('a name of every object is a name like others', async (test) => {
  const given = JSON.parse('{"__proto__": "k", "constructor": "c"}');
  const shown = withoutSecrets(given, object({}));
  test.equal(JSON.stringify(shown), JSON.stringify(given));
});

t.test('the texts of secret values are found, and hidden wherever they come again', async (test) => {
  const schema = object({ key: secret, pins: { writeOnly: true }, open: { type: 'string' } });
  const given = { key: 'to"ken-1', pins: [{ n: 4711 }, 'ab'], open: 'seen', rest: null };
  const texts = secretTexts(given, schema);
  test.same([...texts].sort(), ['4711', 'ab', 'to"ken-1']);
  test.same(secretTexts(given, null), []);
  test.same(secretTexts({ key: '' }, schema), []);
  for (const [value, shown] of [
    ['got to"ken-1, seen', `got ${HIDDEN}, seen`],
    [JSON.stringify({ key: 'to"ken-1' }), `{"key":"${HIDDEN}"}`],
    [{ list: ['xto"ken-1x', 4711, 47, true, null] }, { list: [`x${HIDDEN}x`, HIDDEN, 47, true, null] }],
    ['pin 4711, no 24711 and no abc, but ab', `pin ${HIDDEN}, no 24711 and no abc, but ${HIDDEN}`],
  ] as const) {
    test.same(withoutTexts(value, texts), shown);
  }
  test.equal(withoutTexts('one ab[c] more', ['ab[c]']), `one ${HIDDEN} more`);
  test.equal(withoutTexts('secrets-and-more', ['secrets', 'secrets-and-more']), HIDDEN);
  const many = Array.from({ length: 101 }, (_, index) => `secret-${index}`);
  test.equal(withoutTexts({ a: 1 }, many), HIDDEN);
});

t.test(
  'a secret is found in an address and in base64, wherever it begins there, and in names where that is asked',
  (test) => {
    const secret = 'Ab+/ 4711=ü-key';
    const forms = writtenForms(secret);
    test.equal(
      withoutTexts(`https://a.example/?key=${encodeURIComponent(secret)}&n=1`, forms),
      `https://a.example/?key=${HIDDEN}&n=1`,
    );
    for (const user of ['', 'a', 'ab', 'abc', 'user:', 'someone:']) {
      const repeated = Buffer.from(`${user}${secret}`).toString('base64');
      const hidden = String(withoutTexts(`Basic ${repeated}`, forms));
      test.match(hidden, HIDDEN, user);
      test.notMatch(
        Buffer.from(hidden.replace('Basic ', '').split(HIDDEN).join(''), 'base64').toString(),
        '4711',
        user,
      );
    }
    for (const text of [
      Buffer.from(`of ${secret}`).toString('base64url'),
      Buffer.from(`user:${secret}`).toString('base64url'),
      Buffer.from(secret).toString('hex'),
      Buffer.from(`a${secret}b`).toString('hex').toUpperCase(),
    ]) {
      test.match(String(withoutTexts(text, forms)), HIDDEN, text);
      test.ok(repeating([secret])(`x${text}`), text);
    }
    test.notOk(repeating([secret, 'read'])('tools:read'), 'a short one is no credential');
    const named = { [`x-${secret}`]: 1 };
    test.same(withoutTexts(named, forms), named);
    test.same(withoutTexts(named, forms, { evenNames: true }), { [`x-${HIDDEN}`]: 1 });
    test.end();
  },
);
