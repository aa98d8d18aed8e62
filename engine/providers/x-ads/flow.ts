import { z } from 'zod';
import { ProviderError, type ProviderResponse } from '../outgoing/index.ts';
import { accountBucket, type OAuth1, type ProviderContext } from '../provider.ts';
import { API, KEY, signed, site } from './site.ts';

/** As it is stored. Tokens of X do not end by themselves. */
export const credential = z.strictObject({
  kind: z.literal('oauth1'),
  token: z.string().min(1),
  secret: z.string().min(1),
  userId: z.string().regex(/^\d{1,20}$/),
  screenName: z.string().min(1).max(50),
});
export type Credential = z.output<typeof credential>;

const buckets = (context: ProviderContext) => [accountBucket(KEY, context, 10, 1)];

/** Both steps respond with a form, whatever they call it. */
function fields<S extends z.ZodType>({ body, status }: ProviderResponse, schema: S): z.output<S> {
  const form = Object.fromEntries(new URLSearchParams(new TextDecoder().decode(body)));
  const result = schema.safeParse(form);
  if (result.success) return result.data;
  throw new ProviderError(KEY, 'failed', 'The provider responds in a form that is not the documented one.', { status });
}

const requestToken = z.object({
  oauth_token: z.string().min(1),
  oauth_token_secret: z.string().min(1),
  // Without it the provider does not know OAuth 1.0a, and the callback could be anybody's.
  oauth_callback_confirmed: z.literal('true'),
});

const accessToken = z.object({
  oauth_token: z.string().min(1),
  oauth_token_secret: z.string().min(1),
  user_id: credential.shape.userId,
  screen_name: credential.shape.screenName,
});

export const oauth1: OAuth1 = {
  addresses: [API],
  async begin(context, { callbackUrl, accessMode }) {
    const url = new URL(`${API}/oauth/request_token`);
    url.searchParams.set('x_auth_access_type', accessMode === 'full' ? 'write' : 'read');
    const request = signed(context, { method: 'POST', url, extra: { oauth_callback: callbackUrl } });
    const response = await context.client.send(site, { ...request, buckets: buckets(context) });
    const { oauth_token: token, oauth_token_secret: secret } = fields(response, requestToken);
    const authorize = new URL(`${API}/oauth/authorize`);
    authorize.searchParams.set('oauth_token', token);
    return { token, secret, url: context.client.browserUrl(authorize) };
  },
  async finish(context, { token, secret, verifier }) {
    const url = new URL(`${API}/oauth/access_token`);
    const extra = { oauth_verifier: verifier };
    const request = signed(context, { method: 'POST', url, user: { token, secret }, extra });
    const response = await context.client.send(site, { ...request, buckets: buckets(context) });
    const given = fields(response, accessToken);
    return {
      credential: {
        kind: 'oauth1',
        token: given.oauth_token,
        secret: given.oauth_token_secret,
        userId: given.user_id,
        screenName: given.screen_name,
      } satisfies Credential,
      account: { subject: given.user_id, label: `@${given.screen_name}` },
    };
  },
  async revoke(context, stored) {
    const { token, secret } = credential.parse(stored);
    const url = new URL(`${API}/1.1/oauth/invalidate_token.json`);
    await context.client.send(site, {
      ...signed(context, { method: 'POST', url, user: { token, secret } }),
      buckets: buckets(context),
      // It does not know the token: revoked before.
      accepts: (status) => status === 401,
    });
  },
};
