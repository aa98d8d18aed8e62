import t from 'tap';
import { HIDDEN, withoutSecrets } from '../../engine/secret_values.ts';

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
