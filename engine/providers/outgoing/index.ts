export { withoutDomains } from './blocked.ts';
export type { Bucket, Budgets } from './budgets.ts';
export {
  createProviderClient,
  type ProviderClient,
  type ProviderClientOptions,
  type ProviderRequest,
  type ProviderStream,
  SHARED_HOLD_MS,
  type Site,
} from './client.ts';
export { cutShort, ProviderError, type ProviderReason, providerCode, undone } from './errors.ts';
export { type CallOutcome, callObserver, type ObserveCall, type ObservedCall } from './observe.ts';
export { type OriginMap, replacedOrigin } from './origins.ts';
export { jsonOf, type ProviderResponse, parsed, type ReadRefusal, type Refusal, storableJson } from './response.ts';
export { resetAt, retryAfter } from './retry_after.ts';
export { withTotal } from './total.ts';
