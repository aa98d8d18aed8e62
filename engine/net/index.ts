export { isPublicAddress } from './address.ts';
export { nameResolver, type Resolve } from './connector.ts';
export { NetError, type NetReason } from './errors.ts';
export { parseUrl } from './url.ts';
export {
  createWebClient,
  USER_AGENT,
  type WebAnswer,
  type WebClient,
  type WebClientOptions,
  type WebRequest,
} from './web_client.ts';
