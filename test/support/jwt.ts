import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { Config } from '../../engine/config.ts';
import type { TearDown } from './database.ts';

export type Issuer = Readonly<{
  /** What an app needs to trust it. */
  ownerAuth: Config['ownerAuth'];
  /** A valid token of this person, which ends at `expiresAt` (in ten minutes). */
  token(subject: string, expiresAt?: Date): Promise<string>;
  /** How often the key set was asked for. */
  fetches(): number;
}>;

/** An identity provider on loopback: one key, served as a key set. */
export async function startIssuer(t: TearDown): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' }] });
  let fetches = 0;
  const server = createServer((_req, res) => {
    fetches += 1;
    res.setHeader('content-type', 'application/json').end(keys);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const issuer = 'https://issuer.example';
  const audience = 'runner';
  return {
    ownerAuth: { mode: 'jwt', jwksUrl: `http://127.0.0.1:${port}/jwks`, issuer, audience },
    token: (subject, expiresAt) =>
      new SignJWT({ iss: issuer, aud: audience, sub: subject })
        .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
        .setExpirationTime(expiresAt ?? '10 minutes')
        .sign(privateKey),
    fetches: () => fetches,
  };
}
