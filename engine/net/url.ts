import { NetError } from './errors.ts';

export const MAX_URL_LENGTH = 2_000;
const FIRST_FREE_PORT = 1_024;
/** Ports of other protocols, from the fetch standard, and of databases: an HTTP request there is never meant well. */
const OTHER_PROTOCOLS = new Set([
  1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379,
  6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 10080, 11211, 27017,
]);

const refused = (message: string) => new NetError('url_refused', message);

/**
 * The address as a URL, when it is one that may be asked: http or https, a usual port, no user name or password.
 * Decimal, octal, hexadecimal and shortened IPv4 addresses come out in their usual form, so that one check sees them all.
 * @throws NetError with `url_refused`
 */
export function parseUrl(address: string | URL, base?: URL): URL {
  const text = String(address);
  if (text.length > MAX_URL_LENGTH) throw refused(`An address has at most ${MAX_URL_LENGTH} characters.`);
  const url = URL.parse(text, base?.href);
  if (!url) throw refused(`${JSON.stringify(text.slice(0, 100))} is not an address such as https://example.com.`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw refused(`Only http and https addresses can be read, not ${url.protocol.slice(0, 20)}.`);
  }
  if (url.username !== '' || url.password !== '') throw refused('An address must not carry a user name or a password.');
  if (url.port !== '') {
    const port = Number(url.port);
    const usual = port === 80 || port === 443 || (port >= FIRST_FREE_PORT && !OTHER_PROTOCOLS.has(port));
    if (!usual) throw refused(`Port ${url.port} is not one of websites.`);
  }
  url.hash = '';
  return url;
}
