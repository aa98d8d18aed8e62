export { type Claim, type Claims, type Evidence, MAX_CLAIM_LENGTH, summarize } from './claims.ts';
export { askModel, MODEL_MS, ModelError, type ModelSettings } from './model.ts';
