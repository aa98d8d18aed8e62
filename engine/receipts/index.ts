export { type ReceiptJwk, type ReceiptKey, receiptKeys } from './keys.ts';
export {
  type KeySet,
  type Receipt,
  type ReceiptContent,
  readKeySet,
  readReceipt,
  repeatsNames,
  signedReceipt,
  type Verdict,
  verifyReceipt,
} from './receipt.ts';
