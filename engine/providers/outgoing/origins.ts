import { isLoopback } from '../../config.ts';
import { NetError, parseUrl } from '../../net/index.ts';

/** From a provider's real origin to the one that is called instead (PROVIDER_ORIGINS). */
export type OriginMap = ReadonlyMap<string, string>;

/** The address to call, and to send a browser to: that of the provider, or of what stands in for it in a test. */
export function replacedOrigin(url: URL, origins: OriginMap): URL {
  const other = origins.get(url.origin);
  return other === undefined ? url : new URL(`${url.pathname}${url.search}`, other);
}

/**
 * An address that a person or another server named, as one that may be called: https, or http on loopback where private
 * addresses are allowed. Where its name leads is checked when it is called.
 * @throws NetError with `url_refused`
 */
export function secureUrl(address: string | URL, allowPrivateAddresses: boolean): URL {
  const url = parseUrl(address);
  const isLocal = allowPrivateAddresses && isLoopback(url.hostname);
  if (url.protocol !== 'https:' && !isLocal) throw new NetError('url_refused', 'The address must begin with https://.');
  return url;
}
