export { type Claim, type Claims, type Evidence, MAX_CLAIM_LENGTH, summarize } from './claims.ts';
export { askModel, MODEL_MS, ModelError } from './model.ts';
export type { ModelSettings } from './model_settings.ts';
