import t from 'tap';
import { credentialTexts, withoutCredential } from '../../../engine/integrations/credential_texts.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';

for (const [kind, credential, secrets] of [
  [
    'oauth1',
    { token: '7-access', secret: 'of-the-token', userId: '1234567', screenName: 'ads' },
    ['7-access', 'of-the-token'],
  ],
  [
    'mongodb',
    { host: 'db.example', port: 27_017, srv: true, username: 'reader', password: 'word-of-it' },
    ['word-of-it'],
  ],
  ['oauth2', { accessToken: 'access-1', refreshToken: null, scopes: ['read'], expiresAt: '2026-11-30' }, ['access-1']],
  ['none', {}, []],
] as const) {
  t.test(`of a credential of kind ${kind} its secrets alone are hidden`, async (test) => {
    const texts = credentialTexts({ kind, ...credential });
    test.same(texts, secrets);
    const said = { text: `all ads of 1234567 at db.example: ${secrets.join(' ')}` };
    test.same(withoutCredential(said, texts), {
      text: `all ads of 1234567 at db.example: ${secrets.map(() => HIDDEN).join(' ')}`,
    });
  });
}
