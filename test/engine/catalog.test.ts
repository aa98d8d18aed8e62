import { createHash } from 'node:crypto';
import t from 'tap';
import { canonicalJson, canonicalSha256 } from '../../engine/canonical_json.ts';
import { builtinCatalog, catalogRevision, catalogSchema } from '../../engine/catalog/index.ts';

function messages(change: (catalog: ReturnType<typeof builtinCatalog>) => unknown): string[] {
  const catalog = structuredClone(builtinCatalog());
  const changed = change(catalog) ?? catalog;
  return (catalogSchema.safeParse(changed).error?.issues ?? []).map((i) => `${i.path.join('.')}: ${i.message}`);
}

t.test('canonical JSON is that of RFC 8785', async (t) => {
  // The example of RFC 8785, 3.2.2.
  const value = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  );
  t.equal(
    canonicalJson(value),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
  t.equal(canonicalSha256({ b: 1, a: 2 }), createHash('sha256').update('{"a":2,"b":1}').digest('hex'));
  t.throws(() => canonicalJson(undefined), TypeError);
});

t.test('the shipped catalog has an operator, a chat and three department profiles', async (t) => {
  const { profiles } = builtinCatalog();
  t.same(
    profiles.map((profile) => [profile.key, profile.kind, 'department' in profile ? profile.department : null]),
    [
      ['operator', 'operator', null],
      ['chat', 'chat', null],
      ['growth', 'department', 'growth'],
      ['engineering', 'department', 'engineering'],
      ['support', 'department', 'support'],
    ],
  );
});

t.test('the shipped profiles may use integrations and repositories as their work needs', async (t) => {
  const { version, profiles } = builtinCatalog();
  t.equal(version, 2);
  const policies = profiles.map(({ key, config }) => [
    key,
    config.toolPolicyKeys.filter((policy) => /^(integrations|git)\./.test(policy)).toSorted(),
  ]);
  const both = ['integrations.propose', 'integrations.read'];
  t.same(Object.fromEntries(policies), {
    operator: both,
    chat: both,
    growth: both,
    engineering: ['git.propose', 'git.read', ...both],
    support: both,
  });
});

t.test('the revision follows the content alone', async (t) => {
  const catalog = builtinCatalog();
  const revision = catalogRevision(catalog);
  t.match(revision, /^[0-9a-f]{64}$/);
  const reordered = Object.fromEntries(Object.entries(catalog).reverse());
  t.equal(catalogRevision(catalogSchema.parse(reordered)), revision);
  t.not(catalogRevision({ ...catalog, version: catalog.version + 1 }), revision);
});

t.test('a catalog that could not be provisioned is refused, and the message says where', async (t) => {
  t.same(
    messages(() => undefined),
    [],
  );
  t.same(
    messages((c) => ({ ...c, profiles: c.profiles.filter((p) => p.kind !== 'chat') })),
    ['profiles: needs exactly one chat profile'],
  );
  t.same(
    messages((c) => ({ ...c, profiles: [...c.profiles, c.profiles[2]] })),
    ['profiles.5.key: is the key of profile 2 already'],
  );
  t.match(
    messages((c) => ({ ...c, extra: 1 })),
    [/Unrecognized key/],
  );
  t.match(
    messages((c) => ({ ...c, profiles: c.profiles.map((p) => ({ ...p, department: 'growth' })) })),
    [/profiles\.0: Unrecognized key/, /profiles\.1: Unrecognized key/],
  );
  t.same(
    messages((c) => ({ ...c, profiles: c.profiles.map((p, n) => (n === 0 ? { ...p, key: 'a.b' } : p)) })),
    ['profiles.0.key: must be lower-case words joined by -'],
  );
  t.match(
    messages((c) => ({ ...c, commonSkillKeys: ['a', 'a'] })),
    [/commonSkillKeys: names a key twice/],
  );
  t.match(
    messages((c) => ({ ...c, commonSkillKeys: ['Not A Key'] })),
    [/commonSkillKeys\.0: must be lower-case words/],
  );
});
