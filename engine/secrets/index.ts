export { type EncryptionKey, encryptionKeys } from './keys.ts';
export {
  openSecret,
  rewrapSecret,
  type SealedSecret,
  SecretError,
  type SecretPlace,
  type SecretReason,
  sealSecret,
} from './seal.ts';
