export { isPublicAddress } from './address.ts';
export { nameResolver, type Resolve } from './connector.ts';
export { NetError, type NetReason } from './errors.ts';
export { parseUrl } from './url.ts';
export {
  createWebClient,
  USER_AGENT,
  type WebClient,
  type WebClientOptions,
  type WebRequest,
  type WebResponse,
} from './web_client.ts';
