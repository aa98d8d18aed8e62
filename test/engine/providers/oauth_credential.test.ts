import t from 'tap';
import { oauth2Credential, refreshedCredential, type Tokens } from '../../../engine/providers/oauth/index.ts';

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

t.test('what a refresh does not name stays: the refresh token, and the scopes', (test) => {
  test.same(refreshedCredential(old, tokens()), { ...old, accessToken: 'new', expiresAt: '2026-11-29T12:00:00.000Z' });
  test.match(refreshedCredential(old, tokens({ refreshToken: 'rotated', scopes: ['a'] })), {
    refreshToken: 'rotated',
    scopes: ['a'],
  });
  test.same(refreshedCredential(old, tokens({ scopes: [] })).scopes, [], 'none is a name too');
  test.end();
});
