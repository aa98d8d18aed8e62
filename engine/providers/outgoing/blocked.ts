import type { ProviderClient } from './client.ts';
import { ProviderError } from './errors.ts';

/** As names are compared: `Example.COM.` is `example.com`. */
const plain = (name: string) => name.toLowerCase().replace(/(?<!\.)\.+$/, '');

/** True for the domains themselves and all below them. */
function isBlocked(hostname: string, domains: readonly string[]): boolean {
  const name = plain(hostname);
  return domains.map(plain).some((domain) => domain !== '' && (name === domain || name.endsWith(`.${domain}`)));
}

/**
 * The client for an organization that blocks domains: whoever names an address of one, a person, a provider's code or another
 * server, nothing is sent to it. Redirects stay at their origin, so the first address is the one to check.
 */
export function withoutDomains(client: ProviderClient, domains: readonly string[]): ProviderClient {
  function check(provider: string, hostname: string): void {
    if (!isBlocked(hostname, domains)) return;
    throw new ProviderError(provider, 'blocked', 'The organization blocks the domain of this address.', {
      isOurs: true,
    });
  }
  function checked<T>(provider: string, hostname: string, run: () => Promise<T>): Promise<T> {
    try {
      check(provider, hostname);
    } catch (error) {
      return Promise.reject(error);
    }
    return run();
  }
  const hostOf = (url: string | URL) => URL.parse(String(url))?.hostname ?? '';
  return {
    ...client,
    send: (site, request) => checked(site.provider, hostOf(request.url), () => client.send(site, request)),
    open: (site, request) => checked(site.provider, hostOf(request.url), () => client.open(site, request)),
    json: (site, request, schema) =>
      checked(site.provider, hostOf(request.url), () => client.json(site, request, schema)),
    counted: (call, run) => checked(call.provider, call.target, () => client.counted(call, run)),
    connect: (provider, hostname, port, signal) =>
      checked(provider, hostname, () => client.connect(provider, hostname, port, signal)),
    secureUrl(provider, address) {
      const url = client.secureUrl(provider, address);
      check(provider, url.hostname);
      return url;
    },
  };
}
