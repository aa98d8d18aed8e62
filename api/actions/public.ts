import { z } from 'zod';
import type { ReceiptKey } from '../../engine/receipts/index.ts';
import { type EncodedContent, encodeContent, once, sendEncoded } from '../http/encoded.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';

/** How long a new key may take to reach whoever checks receipts. */
const CACHE = 'public, max-age=300';

/** What anybody needs to check the receipts of actions. */
export function receiptKeyEndpoints(): readonly Endpoint[] {
  let made: ReturnType<typeof once<EncodedContent>> | undefined;
  const keySet = (keys: readonly ReceiptKey[]) => {
    made ??= once(() => encodeContent(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })));
    return made();
  };
  return [
    endpoint({
      method: 'get',
      path: '/.well-known/business-runner-keys.json',
      audience: 'public',
      tag: 'System',
      operationId: 'getReceiptKeys',
      summary: 'Get the public keys of receipts',
      description: 'A JWK set; `kid` is the `keyId` of receipts. May be cached.',
      response: {
        stream: true,
        mediaType: 'application/json',
        description: 'The keys of `RECEIPT_KEYS`; the first one signs.',
        schema: z.object({
          keys: z.array(
            z.object({
              kty: z.literal('OKP'),
              crv: z.literal('Ed25519'),
              x: z.string(),
              kid: z.string(),
              use: z.literal('sig'),
            }),
          ),
        }),
      },
      example: {
        data: {
          keys: [
            {
              crv: 'Ed25519',
              kty: 'OKP',
              x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
              kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
              use: 'sig',
            },
          ],
        },
      },
      async handler({ services, req, res }) {
        sendEncoded(req, res, await keySet(services.config.receiptKeys), 'application/json; charset=utf-8', CACHE);
      },
    }),
  ];
}
