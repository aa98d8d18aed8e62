import t from 'tap';
import {
  credentialOf,
  OAuthError,
  oauth2Credential,
  refreshedCredential,
  type Tokens,
} from '../../../engine/providers/oauth/index.ts';

const tokens = (more: Partial<Tokens> = {}): Tokens => ({
  accessToken: 'new',
  expiresAt: new Date('2026-11-29T12:00:00Z'),
  refreshToken: null,
  scopes: null,
  identity: null,
  ...more,
});
const old = oauth2Credential.parse({
  kind: 'oauth2',
  accessToken: 'old',
  expiresAt: null,
  refreshToken: 'kept',
  scopes: ['a', 'b'],
});
const stored = { subject: 'anna', credential: old };
const granted = { subject: 'anna', requested: ['a'], needsRefreshToken: true, stored };

t.test('a missing refresh token is the stored one of the same account, and of no other', (test) => {
  test.same(credentialOf(tokens(), granted), {
    kind: 'oauth2',
    accessToken: 'new',
    expiresAt: '2026-11-29T12:00:00.000Z',
    refreshToken: 'kept',
    scopes: ['a'],
  });
  test.equal(credentialOf(tokens({ refreshToken: 'given' }), granted).refreshToken, 'given');
  for (const other of [
    { ...granted, subject: 'berta' },
    { ...granted, stored: undefined },
  ]) {
    test.throws(() => credentialOf(tokens(), other), OAuthError);
    test.equal(credentialOf(tokens(), { ...other, needsRefreshToken: false }).refreshToken, null);
  }
  test.end();
});

t.test('granted scopes are those that the server names, even none', (test) => {
  test.same(credentialOf(tokens({ scopes: [] }), granted).scopes, []);
  test.same(credentialOf(tokens({ scopes: ['b'] }), granted).scopes, ['b']);
  test.same(refreshedCredential(old, tokens()), { ...old, accessToken: 'new', expiresAt: '2026-11-29T12:00:00.000Z' });
  test.match(refreshedCredential(old, tokens({ refreshToken: 'rotated', scopes: ['a'] })), {
    refreshToken: 'rotated',
    scopes: ['a'],
  });
  test.end();
});
