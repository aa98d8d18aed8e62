export { mediaTypeOf } from './decode.ts';
export { isSameSite, type Page, type PageBytes, readPage } from './page.ts';
export { createPageReader, domainBlocker, isPageFailure, PageError, type PageReader } from './page_reader.ts';
export { type PageQuote, QUOTE_CHARACTERS, quotePage, WITHOUT_TEXT } from './quote.ts';
export {
  type KeptPage,
  READ_LIMITS,
  type ReadLimits,
  type ReadOptions,
  type ReadOutcome,
  type ReadWarning,
  readWebsite,
} from './reader.ts';
