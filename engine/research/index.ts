export { type AddressFailure, readAddresses } from './addresses.ts';
export { type Claim, type Claims, type Evidence, MAX_CLAIM_LENGTH, summarize } from './claims.ts';
export { readEvidence } from './evidence.ts';
export { askModel, MODEL_MS, ModelError } from './model.ts';
export type { ModelSettings } from './model_settings.ts';
export { keepPage, type Researcher, recallPage } from './page_source.ts';
export { siteClaims } from './site_claims.ts';
