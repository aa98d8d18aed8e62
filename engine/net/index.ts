export { isPublicAddress } from './address.ts';
export { type Guard, nameResolver, openChecked, type Resolve } from './connector.ts';
export { NetError, type NetReason, netError } from './errors.ts';
export { parseUrl } from './url.ts';
export {
  createWebClient,
  USER_AGENT,
  type WebClient,
  type WebClientOptions,
  type WebRequest,
  type WebResponse,
} from './web_client.ts';
